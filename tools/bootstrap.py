"""The start of `make`, on any Python that the machine has: `python3 -m tools.bootstrap app|dev`.

Its syntax is that of Python 3.6, so that an old Python can say what is missing and which command installs it.
The rest is in `setup_steps`.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys

OLDEST_PYTHON = (3, 11)
#: Tried in this order when the `python3` that make found is too old.
OTHER_PYTHONS = ("python3.14", "python3.13", "python3.12", "python3.11")
INTERRUPTED = 130


def is_new_enough(python: str, module: str = "venv") -> bool:
    """Whether it starts (a shim of a version manager may not), is new enough, and has `module`."""
    check = f"import sys, {module}; sys.exit(sys.version_info < {OLDEST_PYTHON})"
    return subprocess.call([python, "-c", check], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def missing() -> str:
    """The missing program and the command that installs it; empty if nothing is missing."""
    if sys.version_info < OLDEST_PYTHON:
        return (
            f"this needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}. "
            "macOS: brew install python. Debian and Ubuntu: sudo apt-get install python3 python3-venv. "
            "To use another Python: make PYTHON=/path/to/python3"
        )
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        return (
            f"{sys.executable} has no venv. "
            f"Debian and Ubuntu: sudo apt-get install python{sys.version_info[0]}.{sys.version_info[1]}-venv. "
            "Elsewhere, install a Python that has venv, and name it: make PYTHON=/path/to/python3"
        )
    return ""


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Exit codes: 0 set up, 1 failed and said why, 130 interrupted."""
    lack = missing()
    if lack:
        for name in OTHER_PYTHONS:
            other = shutil.which(name)
            if other and is_new_enough(other, "ensurepip"):
                os.execv(other, [other, "-m", "tools.bootstrap", *sys.argv[1:]])  # noqa: S606 - without a shell
        sys.stderr.write(f"tidemill: {lack}\n")
        return 1

    from tools.setup_steps import SetupError, set_up  # noqa: PLC0415 - in the syntax of today

    signal.signal(signal.SIGTERM, interrupt)
    try:
        set_up(sys.argv[1])
    except SetupError as error:
        sys.stderr.write(f"\ntidemill: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\ntidemill: stopped; run the same make target again to continue\n")
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
