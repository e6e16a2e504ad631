"""Imports the job files of a stage during synth: after a deployment, a broken file stops its types.

A separate process imports them, because the synth process lacks their dependencies. May not import CDK.
"""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tidemill.cdk.config import HOST_PYTHON
from tidemill.cdk.synth_errors import SynthError

SCRIPT: Final = Path(__file__).parent / "import_job_files.py"
_REMEDY: Final = (
    "; a function can import boto3 and the packages in functions/requirements.txt: "
    "add the package to the group `functions` in pyproject.toml, then run `make lock`"
)


class JobFileError(SynthError):
    """The functions would fail to load the job types."""


def require_job_files(packages: Sequence[str], *, path: Sequence[Path], lane_seconds: Mapping[str, float]) -> None:
    """Import all modules of `packages`, as a function with its code in `path` does. Raises `JobFileError`.

    `lane_seconds`: how long a run on each lane may take. No type may ask for more.

    The environment is empty, because a handler must read its variables when it runs, not when it is imported.
    """
    arguments = [sysconfig.get_path("purelib"), ",".join(packages), json.dumps(lane_seconds), *map(str, path)]
    done = subprocess.run(  # noqa: S603 - this Python, by its path
        # Isolated, without site-packages, and without writing bytecode.
        [sys.executable, "-I", "-S", "-B", str(SCRIPT), *arguments],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        error = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        remedy = _REMEDY if "ModuleNotFoundError" in error else ""
        raise JobFileError(f"Python {HOST_PYTHON} cannot load the job types: {error}{remedy}")
