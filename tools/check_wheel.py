"""`python -m tools.check_wheel`: builds the wheel, installs it into an empty environment, and tests a job type there.

The environment gets what the wheel depends on, from the lock, and nothing else: no Powertools, no CDK.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from tools.paths import ROOT, python_of

#: The guide for a first job type has this: a module with a job type, and a test of it.
JOB_TYPE: Final = """
from pydantic import BaseModel

from tidemill import PermanentJobError, Run, job_type


class Text(BaseModel):
    text: str


@job_type("text.count", payload=Text, max_attempts=5)
def count(payload: Text, run: Run) -> dict[str, int]:
    words = payload.text.split()
    if not words:
        raise PermanentJobError("nothing to count")
    return {"words": len(words), "attempt": run.attempt}
"""
TEST: Final = """
import importlib.util

import tidemill.client
from tidemill.testing import State, run_job

from text_count import count

assert run_job(count, {"text": "to be or not"}).result == {"words": 4, "attempt": 1}
assert run_job(count, {"text": " "}).state is State.DEAD
absent = ("aws_lambda_powertools", "aws_cdk", "click", "shortener")
assert not [name for name in absent if importlib.util.find_spec(name)], "the environment is not empty"
print("one job type declared and tested with", tidemill.client.__file__)
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source = folder / "source"
        # A copy: setuptools leaves files in the folder that it builds, and takes up those of an earlier build.
        shutil.copytree(ROOT / "shared", source / "shared", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
        for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
            shutil.copyfile(ROOT / name, source / name)
        _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, source)
        (wheel,) = folder.glob("*.whl")
        _show(wheel)
        lock = folder / "requirements.txt"
        compile_ = ("-m", "uv", "pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-emit-index-url")
        _run(sys.executable, *compile_, ROOT / "pyproject.toml", "-c", ROOT / "requirements.txt", "-o", lock)
        _run(sys.executable, "-m", "venv", folder / "venv")
        install = (python_of(folder / "venv"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run(*install, "--no-deps", "--require-hashes", "-r", lock)
        _run(*install, "--no-deps", wheel)
        (folder / "text_count.py").write_text(JOB_TYPE)
        (folder / "test_text_count.py").write_text(TEST)
        _run(python_of(folder / "venv"), folder / "test_text_count.py", cwd=folder)
    return 0


def _show(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        top = sorted({name.split("/")[0] for name in content.namelist()})
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, with {', '.join(top)}")


def _run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Without the folders that Python and pip would take from the environment. Raises `CalledProcessError`."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PIP_TARGET"}}
    subprocess.run([str(word) for word in command], cwd=cwd, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
