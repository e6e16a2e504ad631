"""Sets up what `make` needs, from pinned and hashed packages. What is done is stamped, and not done again.

May import the standard library alone, since it runs before anything is installed.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.bootstrap import is_new_enough
from tools.paths import CDK, EMULATOR_VENV, NODE_MODULES, ROOT, STATE, VENV, node_folder, python_of

LOG = STATE / "setup.log"
TAIL_LINES = 15
#: `--no-deps`, since a lock is complete.
PIP_INSTALL = ("-I", "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation")
#: Python compiles what it imports, which is a tenth of what is there, and compiling it all takes a minute.
NO_COMPILE = ("--no-compile",)
#: A person's own pip settings hold, except those that would install somewhere else.
PIP_REDIRECTIONS = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PYTHONHOME", "PYTHONPATH")


class SetupError(Exception):
    """What stops the setting up. Its text names the step, the reason and, where there is one, the remedy."""


class KilledError(SetupError):
    """A program was ended by a signal, so what it was filling is not to be trusted."""


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
        return self.target / ".tidemill" / self.name

    def digest(self) -> str:
        """Includes the place: an environment that was moved does not work."""
        digest = hashlib.sha256(str(ROOT).encode())
        for path in self.inputs:
            digest.update(path.read_bytes() if path.exists() else b"absent")
        return digest.hexdigest()

    def is_done(self) -> bool:
        return self.stamp.is_file() and self.stamp.read_text() == self.digest()


def steps(wanted: str) -> list[Step]:
    """`app` is what the demo and a deployment need; `dev` adds what the tests and linters need."""
    app = [
        _environment(VENV, ".venv"),
        _packages("the packages of the app", VENV, ROOT / "requirements.txt", NO_COMPILE),
        # For the recount of the demo. After the former, which brings what builds the one source package. Compiled now:
        # that package makes Python warn when it is, and a test would take the warning for a fault.
        _packages("the packages of the functions", VENV, ROOT / "functions" / "requirements.txt"),
        Step("the project itself", "project", VENV, (ROOT / "pyproject.toml",), _install_project),
        _environment(EMULATOR_VENV, "an environment for the embedded AWS"),
        _packages(
            "the embedded AWS", EMULATOR_VENV, ROOT / "shared" / "tidemill" / "local" / "requirements.txt", NO_COMPILE
        ),
        Step("the CDK command line", "cdk", NODE_MODULES, (ROOT / "package-lock.json",), _install_cdk),
    ]
    dev = [_packages("the packages of the tests", VENV, ROOT / "requirements-dev.txt", NO_COMPILE)]
    return app + dev if wanted == "dev" else app


def _environment(venv: Path, text: str) -> Step:
    """The emulator's has the Python of the other: its functions run what was installed and compiled with that."""
    inputs = () if venv == VENV else (VENV / "pyvenv.cfg",)
    return Step(text, "environment", venv, inputs, lambda: _make_environment(venv))


def _packages(text: str, venv: Path, lock: Path, options: Sequence[str] = ()) -> Step:
    def install() -> None:
        with _unfinished(venv):
            _run(python_of(venv), *PIP_INSTALL, *options, "--require-hashes", "--requirement", lock)

    return Step(text, "-".join(lock.relative_to(ROOT).with_suffix("").parts), venv, (lock,), install)


def _make_environment(venv: Path) -> None:
    """Keeps an environment that works, also one that another tool made."""
    if python_of(venv).exists() and is_new_enough(str(python_of(venv)), "pip"):
        return
    _run(Path(sys.executable) if venv == VENV else python_of(VENV), "-m", "venv", "--clear", venv)


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
    mark = venv / ".tidemill" / "unfinished"
    mark.touch()
    try:
        yield
    except KilledError:
        raise
    except SetupError:
        mark.unlink()
        raise
    mark.unlink()


def _discard_broken(venv: Path) -> None:
    """Start again where an environment was moved, lost its Python, or was being filled when the plug was pulled."""
    unfinished = (venv / ".tidemill" / "unfinished").exists()
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
        raise KilledError(f"{program.name} was killed by signal {-code}. Run the same make again to start afresh.")
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
    usable = all(python_of(venv).exists() for venv in (VENV, EMULATOR_VENV))
    if usable and all(step.is_done() for step in steps(wanted)):
        return
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


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
