"""A PostgreSQL server for one run, on a free port of 127.0.0.1 and in a temporary folder.

PostgreSQL refuses to run as root, so root starts it as another user.
https://www.postgresql.org/docs/15/app-initdb.html
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.peers import cpu
from tidemill.local.emulator import free_port
from tidemill.local.wait import wait_until

#: Where Debian and Ubuntu install it, which is not on the path.
_DEBIAN: Final = Path("/usr/lib/postgresql")
_USERS: Final = ("postgres", "nobody")
_PATIENCE_SECONDS: Final = 30
_USER: Final = "bench"


@dataclass(frozen=True, slots=True)
class Postgres:
    """Implements `system.Service`. `binaries` is the folder of psql."""

    process: subprocess.Popen[bytes]
    port: int
    binaries: Path

    def url(self, database: str) -> str:
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database}"

    def query(self, database: str, sql: str) -> list[list[str]]:
        """The rows, each a list of texts."""
        done = subprocess.run(
            [self.binaries / "psql", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-qAt", self.url(database), "-c", sql],
            capture_output=True,
            text=True,
            check=True,
        )
        return [line.split("|") for line in done.stdout.splitlines()]

    def create(self, database: str) -> str:
        """A new database. Returns its URL."""
        self.query("postgres", f"CREATE DATABASE {database}")
        return self.url(database)

    def seconds(self) -> float:
        return cpu.tree(self.process.pid)

    def statements(self, database: str) -> int:
        """Statements of the clients of the database so far: each is a round trip.

        https://www.postgresql.org/docs/15/pgstatstatements.html
        """
        counted = self.query(
            "postgres",
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements JOIN pg_database ON dbid = pg_database.oid "
            f"WHERE datname = '{database}'",
        )
        return int(counted[0][0])


def binaries() -> Path | None:
    """The folder of the newest installed server. None without one."""
    found = [path.parent for path in _DEBIAN.glob("*/bin/postgres")]
    if on_path := shutil.which("postgres"):
        found.append(Path(on_path).resolve().parent)
    return max((path for path in found if (path / "initdb").exists()), default=None)


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Postgres]:
    """A server with `folder / "postgres.log"`."""
    place = binaries()
    assert place, "no PostgreSQL is installed"
    with tempfile.TemporaryDirectory(prefix="bench-postgres-") as home, (folder / "postgres.log").open("wb") as log:
        as_user = _as_user(Path(home))
        data, port = f"{home}/data", free_port()
        init = [
            str(place / "initdb"),
            "-D",
            data,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            f"--username={_USER}",
        ]
        subprocess.run(init, stdout=log, stderr=log, check=True, **as_user)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": home,
            "max_connections": 200,
            "shared_preload_libraries": "pg_stat_statements",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        process = subprocess.Popen([place / "postgres", "-D", data, *options], stdout=log, stderr=log, **as_user)
        server = Postgres(process, port, place)
        try:
            wait_until(lambda: _answers(server), _PATIENCE_SECONDS, "PostgreSQL to answer")
            server.query("postgres", "CREATE EXTENSION pg_stat_statements")
            yield server
        finally:
            # Ends all sessions, and then the server.
            process.send_signal(signal.SIGINT)
            process.wait(_PATIENCE_SECONDS)


def _answers(server: Postgres) -> bool:
    assert server.process.poll() is None, "PostgreSQL ended"
    with contextlib.suppress(subprocess.CalledProcessError):
        return bool(server.query("postgres", "SELECT 1"))
    return False


def _as_user(home: Path) -> dict[str, Any]:
    """The options of `Popen`. Root runs it as the first user of `_USERS` that exists, who owns `home` then."""
    if os.geteuid():
        return {"cwd": home}
    known = {each.pw_name: each for each in pwd.getpwall()}
    user = next(known[name] for name in _USERS if name in known)
    os.chown(home, user.pw_uid, user.pw_gid)
    return {"cwd": home, "user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
