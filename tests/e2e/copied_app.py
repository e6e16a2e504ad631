"""A copy of the app without the example, to which a test adds files, as a user does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.paths import ROOT

#: The files of the example. A user deletes them.
_EXAMPLE: Final = (
    "demo",
    "functions/redirect",
    "functions/shorten",
    "functions/stats",
    "functions/jobs/click_enrich.py",
    "functions/jobs/clicks_export.py",
    "functions/jobs/clicks_rollup.py",
    "shared/shortener",
    "stacks/applications/shortener",
)
_APP: Final = (
    "app.py",
    "cdk.json",
    "functions",
    "package.json",
    "package-lock.json",
    "pyproject.toml",
    "shared",
    "stacks",
)
#: What setting up has made, and what a build may use again.
_MADE: Final = ("build", "node_modules", ".tidemill/emulator-venv")


def copy_app(to: Path) -> None:
    for name in _APP:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copyfile(source, to / name)
    for name in _EXAMPLE:
        path = to / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    (to / ".tidemill").mkdir()
    # A checkout in which nothing was built yet has no `build`.
    for name in (each for each in _MADE if (ROOT / each).exists()):
        (to / name).symlink_to(ROOT / name)


def run_python(folder: Path, *arguments: str) -> str:
    """What it prints. It runs in the folder, with the code there."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "shared")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
