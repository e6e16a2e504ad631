"""Starts, finds and stops the emulator of one instance. Does not know what runs on it."""

import contextlib
import http.client
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

from tidemill.local import environment, launcher, processes
from tidemill.local.paths import EMULATOR_PYTHON, ROOT
from tidemill.local.wait import WaitError, wait_until

HEALTH: Final = "/_ministack/health"
START_PATIENCE_SECONDS: Final = 30
#: Attempts to find a port: another program may take a free port before the emulator listens on it.
ATTEMPTS: Final = 5
TAIL_LINES: Final = 15


class EmulatorError(Exception):
    """The emulator did not start. The text shows the end of its log."""


@dataclass(frozen=True)
class Emulator:
    """A started emulator, which may have ended since. It listens on 127.0.0.1 only."""

    pid: int
    port: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def is_healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", HEALTH)
            return connection.getresponse().status == http.HTTPStatus.OK
        return False


@contextlib.contextmanager
def tied(folder: Path) -> Iterator[Emulator]:
    """An emulator that runs during the block. It also ends if this process is killed."""
    process, emulator = _start(folder, standard_input=subprocess.PIPE)
    try:
        yield emulator
    finally:
        stop(folder)
        process.communicate()


def leave_running(folder: Path) -> Emulator:
    """An emulator that outlives this process."""
    process, emulator = _start(folder, standard_input=subprocess.DEVNULL)
    process.returncode = 0  # prevents the warning about a process that nothing waits for
    return emulator


def find(folder: Path) -> Emulator | None:
    """The emulator of the instance in `folder` if it runs and answers, otherwise None. A busy one answers late."""
    try:
        emulator = Emulator(**json.loads((folder / "emulator.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None

    def found() -> str | None:
        if emulator.pid not in processes.emulators(folder):
            return "ended"
        return "answers" if emulator.is_healthy() else None

    with contextlib.suppress(WaitError):
        return emulator if wait_until(found, START_PATIENCE_SECONDS, "the emulator to answer") == "answers" else None
    return None


def stop(folder: Path) -> None:
    """End the emulator and all its workers, also after a crash. Raises WaitError if a process does not end."""
    processes.end(folder)
    shutil.rmtree(folder / "tmp", ignore_errors=True)
    (folder / "emulator.json").unlink(missing_ok=True)


def _start(folder: Path, standard_input: int) -> tuple[subprocess.Popen[bytes], Emulator]:
    stop(folder)
    (folder / "tmp").mkdir(parents=True)
    log = folder / "emulator.log"
    for _ in range(ATTEMPTS):
        port = free_port()
        with log.open("wb") as output:
            process = _launch(folder, port, standard_input, output)
        emulator = Emulator(process.pid, port)

        def decided(process: subprocess.Popen[bytes] = process, emulator: Emulator = emulator) -> bool:
            return process.poll() is not None or emulator.is_healthy()

        try:
            wait_until(decided, START_PATIENCE_SECONDS, "the emulator to answer")
        except BaseException as error:
            process.kill()
            process.communicate()
            if isinstance(error, WaitError):
                raise EmulatorError(f"{error}\n{_tail(log)}") from None
            raise
        if process.poll() is None:
            (folder / "emulator.json").write_text(json.dumps(asdict(emulator)))
            return process, emulator
        process.communicate()
        if "already in use" not in log.read_text(errors="replace"):
            raise EmulatorError(f"the emulator ended with code {process.returncode}\n{_tail(log)}")
    raise EmulatorError(f"{ATTEMPTS} ports in a row were taken by other programs; run the command again")


def _launch(folder: Path, port: int, standard_input: int, output: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a new process group: Ctrl-C in a terminal reaches only this process, which then stops the emulator."""
    tie = ["--tied"] if standard_input == subprocess.PIPE else []
    return subprocess.Popen(
        [str(EMULATOR_PYTHON), "-P", launcher.__file__, str(folder), *tie],
        cwd=ROOT,
        env=environment.for_emulator(folder, port),
        stdin=standard_input,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _tail(log: Path) -> str:
    return "\n".join(f"  | {line}" for line in log.read_text(errors="replace").splitlines()[-TAIL_LINES:])
