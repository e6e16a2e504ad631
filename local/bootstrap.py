"""Sets up what `make` needs, from pinned and hashed packages: `python3 -m local.bootstrap [app|dev]`.

Run by whatever Python the machine has, so: the standard library, in a syntax that an old Python can read far enough to
say that it is too old. What is done is stamped, and a second run finds nothing to do.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.paths import CDK, EMULATOR_VENV, NODE_MODULES, ROOT, STATE, VENV, node_folder, python_of

OLDEST_PYTHON = (3, 11)
#: Tried in this order when the `python3` that make found is too old.
OTHER_PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11")
LOG = STATE / "setup.log"
TAIL_LINES = 15
#: `--no-deps` since a lock is complete; `--no-compile` since Python compiles what it imports, a tenth of what is there.
PIP_INSTALL = ("-I", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-build-isolation")
#: A person's own pip settings hold, except those that would install somewhere else.
PIP_REDIRECTIONS = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONHOME", "PYTHONPATH")


class SetupError(Exception):
    """What stops the setting up. Its text names the step, the reason and, where there is one, the remedy."""


@dataclass(frozen=True)
class Step:
    """Something to do once, and again whenever one of `inputs` changes. The stamp lies in what the step fills."""

    text: str
    name: str
    target: Path
    inputs: Sequence[Path]
    run: Callable[[], None]

    @property
    def stamp(self) -> Path:
        return self.target / ".millrace" / self.name

    def digest(self) -> str:
        """Includes the place: an environment that was moved does not work."""
        digest = hashlib.sha256(str(ROOT).encode())
        for path in self.inputs:
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def is_done(self) -> bool:
        return self.stamp.is_file() and self.stamp.read_text() == self.digest()


def steps(wanted: str) -> list[Step]:
    """`app` is what the demo and a deployment need; `dev` adds what the tests and linters need."""
    app = [
        _environment(VENV, ".venv"),
        _packages("the packages of the app", VENV, ROOT / "requirements.txt"),
        # For the recount of the demo. After the former, which brings what builds the one source package.
        _packages("the packages of the functions", VENV, ROOT / "functions" / "requirements.txt"),
        Step("the project itself", "project", VENV, (ROOT / "pyproject.toml",), _install_project),
        _environment(EMULATOR_VENV, "an environment for the embedded AWS"),
        _packages("the embedded AWS", EMULATOR_VENV, ROOT / "local" / "requirements.txt"),
        Step("the CDK command line", "cdk", NODE_MODULES, (ROOT / "package-lock.json",), _install_cdk),
    ]
    dev = [_packages("the packages of the tests", VENV, ROOT / "requirements-dev.txt")]
    return app + dev if wanted == "dev" else app


def _environment(venv: Path, text: str) -> Step:
    return Step(text, "environment", venv, (), lambda: _make_environment(venv))


def _packages(text: str, venv: Path, lock: Path) -> Step:
    def install() -> None:
        with _unfinished(venv):
            _run(python_of(venv), *PIP_INSTALL, "--require-hashes", "--requirement", lock)

    return Step(text, f"{lock.parent.name}-{lock.stem}" if lock.parent != ROOT else lock.stem, venv, (lock,), install)


def _make_environment(venv: Path) -> None:
    """One that works is kept, whoever made it."""
    if python_of(venv).exists():
        if _is_new_enough(python_of(venv), "pip"):
            return
    _run(Path(sys.executable), "-m", "venv", "--clear", venv)


def _install_project() -> None:
    _run(python_of(VENV), *PIP_INSTALL, "--editable", ROOT)


def _install_cdk() -> None:
    node = node_folder()
    npm = node / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    _run(node / "bin" / "node", npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    if not CDK.is_file():
        raise SetupError(f"npm installed no CDK command line at {CDK}")


@contextlib.contextmanager
def _unfinished(venv: Path) -> Iterator[None]:
    """A mark that stays only when this process or pip is killed: pip takes a package that is half there for whole."""
    mark = venv / ".millrace" / "unfinished"
    mark.touch()
    try:
        yield
    except SetupError:
        mark.unlink()
        raise
    mark.unlink()


def _discard_broken(venv: Path) -> None:
    """Start again where an environment was moved, lost its Python, or was being filled when the plug was pulled."""
    unfinished = (venv / ".millrace" / "unfinished").exists()
    moved = _environment(venv, "").stamp.exists() and not _environment(venv, "").is_done()
    if unfinished or moved or (venv.exists() and not python_of(venv).exists()):
        shutil.rmtree(venv)


def _run(program: Path, *arguments: Path | str) -> None:
    """Run with the output in the log. Raises SetupError with its end."""
    environment = {name: value for name, value in os.environ.items() if name not in PIP_REDIRECTIONS}
    environment.update(PIP_USER="0", PIP_NO_INPUT="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    command = [str(program), *map(str, arguments)]
    with LOG.open("w") as log:
        started = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            code = started.wait()
        except BaseException:
            started.terminate()
            started.wait()
            raise
    if code < 0:
        raise KeyboardInterrupt  # killed, so what it was filling is not to be trusted
    if code:
        tail = LOG.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        raise SetupError(
            "\n".join(["this failed:", "  " + " ".join(command), *(f"  | {line}" for line in tail)])
            + f"\nAll it said is in {LOG}. Run the same make again to go on from here."
        )


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Only one process sets up at a time; the lock goes with the process that held it."""
    STATE.mkdir(exist_ok=True)
    with (STATE / "setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            _say("waiting for another make that is setting up\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def set_up(wanted: str) -> None:
    """Do what is not done yet. Raises SetupError."""
    if all(step.is_done() for step in steps(wanted)):
        return
    _require_venv()
    with _alone():
        for venv in (VENV, EMULATOR_VENV):
            _discard_broken(venv)
        missing = [step for step in steps(wanted) if not step.is_done()]
        for number, step in enumerate(missing, start=1):
            _say(f"setting up {number}/{len(missing)}: {step.text} … ")
            started = time.monotonic()
            try:
                step.run()
            except SetupError as error:
                raise SetupError(f"could not set up {step.text}: {error}") from None
            step.stamp.parent.mkdir(exist_ok=True)
            step.stamp.write_text(step.digest())
            _say(f"{time.monotonic() - started:.0f} s\n")


def _require_venv() -> None:
    if all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        return
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    raise SetupError(
        f"{sys.executable} has no venv. Debian and Ubuntu: sudo apt-get install python{version}-venv. "
        "Elsewhere, install a Python that has it and say which: make PYTHON=/path/to/python3"
    )


def _require_python() -> None:
    """Go on with a newer Python if this one is too old. Raises SetupError if there is none."""
    if sys.version_info >= OLDEST_PYTHON:
        return
    for name in OTHER_PYTHONS:
        other = shutil.which(name)
        if other and _is_new_enough(Path(other)):
            os.execv(other, [other, "-m", "local.bootstrap", *sys.argv[1:]])  # noqa: S606 - the same program, a newer Python
    raise SetupError(
        f"this needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}. "
        "macOS: brew install python. Debian and Ubuntu: sudo apt-get install python3 python3-venv. "
        "If there is another one: make PYTHON=/path/to/python3"
    )


def _is_new_enough(python: Path, module: str = "venv") -> bool:
    """Whether it starts at all (a shim of a version manager may not), is no older than it must be, and has `module`."""
    check = f"import sys, {module}; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    return subprocess.run([str(python), "-c", check], capture_output=True, check=False).returncode == 0


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    signal.signal(signal.SIGTERM, _stop)
    try:
        _require_python()
        set_up(sys.argv[1] if len(sys.argv) > 1 else "app")
    except SetupError as error:
        _say(f"\nmillrace: {error}\n")
        return 1
    except KeyboardInterrupt:
        _say("\nmillrace: stopped; run the same make again to go on from here\n")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
