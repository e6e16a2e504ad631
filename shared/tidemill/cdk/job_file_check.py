"""Tries the job files of a stage before anything is deployed: one that cannot be imported would stop every submission.

In a process of its own, since a synth has nothing that would let it import them. May not import CDK.
"""

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tidemill.cdk.config import HOST_PYTHON, SynthError

SCRIPT: Final = Path(__file__).parent / "import_job_files.py"
_REMEDY: Final = (
    "; a function has boto3 and what functions/requirements.txt brings: "
    "add to the group `functions` in pyproject.toml, then `make lock`"
)


class JobFileError(SynthError):
    """Job types that the functions could not load."""


def require_job_files(packages: Sequence[str], *, path: Sequence[Path]) -> None:
    """Import all modules of `packages` as a function does that finds its code in `path`. Raises `JobFileError`.

    With an empty environment: what a handler needs of it, it reads when it runs.
    """
    folders = [sysconfig.get_path("purelib"), ",".join(packages), *map(str, path)]
    done = subprocess.run(  # noqa: S603 - this Python, by its path
        # Isolated, without site-packages, and leaving no bytecode behind.
        [sys.executable, "-I", "-S", "-B", str(SCRIPT), *folders],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        remedy = _REMEDY if "ModuleNotFoundError" in said else ""
        raise JobFileError(f"Python {HOST_PYTHON} cannot load the job types: {said}{remedy}")
