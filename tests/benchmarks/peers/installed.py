"""Installs the packages of the peers into an environment of their own, and says what is missing.

`make test` does not need them. The locks are requirements-peers.txt and graphile/package-lock.json.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.peers import postgres
from tools.paths import ROOT, STATE, node_folder, python_of

LOCK: Final = ROOT / "requirements-peers.txt"
VENV: Final = STATE / "peers-venv"
#: The folder of graphile-worker.
GRAPHILE: Final = Path(__file__).parent / "graphile"
NODE_FOLDER: Final = STATE / "peers-node"
_PIP: Final = ("-I", "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:")


def python() -> Path:
    """The Python that has the packages of the peers."""
    return python_of(VENV)


def node() -> Path:
    return node_folder() / "bin" / "node"


def without_proc() -> str:
    return "" if Path("/proc/self/stat").exists() else "its CPU time is read from /proc, which this system lacks"


def without_postgres() -> str:
    return (
        ""
        if postgres.binaries()
        else "PostgreSQL is not installed (Debian and Ubuntu: sudo apt-get install postgresql)"
    )


def without_python_packages() -> str:
    """Installs them if need be. The reason if that fails."""
    stamp = VENV / "installed.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == LOCK.read_text(encoding="utf-8"):
        return ""
    shutil.rmtree(VENV, ignore_errors=True)
    reason = failure([sys.executable, "-m", "venv", VENV]) or failure([python(), *_PIP, "--requirement", LOCK])
    if not reason:
        shutil.copyfile(LOCK, stamp)
    return reason


def without_graphile_worker() -> str:
    """Installs it if need be. The reason if that fails."""
    NODE_FOLDER.mkdir(parents=True, exist_ok=True)
    lock, stamp = GRAPHILE / "package-lock.json", NODE_FOLDER / "installed.json"
    if not (stamp.exists() and stamp.read_bytes() == lock.read_bytes()):
        for name in ("package.json", "package-lock.json", "worker.mjs"):
            shutil.copyfile(GRAPHILE / name, NODE_FOLDER / name)
        npm = node_folder() / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        if reason := failure([node(), npm, *arguments], cwd=NODE_FOLDER):
            return reason
        shutil.copyfile(lock, stamp)
    shutil.copyfile(GRAPHILE / "worker.mjs", NODE_FOLDER / "worker.mjs")
    return ""


def require(command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
    """Run a command of a peer that prepares its database. Raises `CalledProcessError`."""
    subprocess.run(command, cwd=ROOT, env=dict(environment), capture_output=True, check=True)


def failure(command: list[str | Path], cwd: Path = ROOT) -> str:
    """The last line of what a failed command printed; empty if it did not fail."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if not done.returncode:
        return ""
    lines = (done.stderr or done.stdout).strip().splitlines() or [f"code {done.returncode}"]
    return f"its packages cannot be installed: {lines[-1]}"
