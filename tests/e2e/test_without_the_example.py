"""The app without the example: its files are deleted, and what is left is synthesised, deployed and runs a job."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stacks.composition import ROOT

#: The files of the example. A user deletes them.
EXAMPLE = (
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
APP = ("app.py", "cdk.json", "functions", "package.json", "package-lock.json", "pyproject.toml", "shared", "stacks")
#: What setting up has made, and what a build may use again.
MADE = ("build", "node_modules", ".tidemill/emulator-venv")
JOB_TYPE = """
from pydantic import BaseModel

from tidemill import Run, job_type


class Text(BaseModel):
    text: str


@job_type("text.count", payload=Text)
def count(payload: Text, run: Run) -> int:
    return len(payload.text.split())
"""
RUN_ONE_JOB = """
from tidemill.local.lifecycle import deployed

with deployed() as app:
    print(app.tidemill("submit", "text.count", '{"text": "to be or not"}', "--wait").stdout)
"""


@pytest.fixture
def app_folder(tmp_path: Path) -> Path:
    for name in APP:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copyfile(source, tmp_path / name)
    for name in EXAMPLE:
        path = tmp_path / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    (tmp_path / ".tidemill").mkdir()
    for name in MADE:
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "functions" / "jobs" / "text_count.py").write_text(JOB_TYPE)
    return tmp_path


def _python(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder / "shared")}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_synthesised_and_no_template_names_the_example(app_folder: Path) -> None:
    _python(app_folder, "-m", "tidemill.local", "synth", "--stage", "dev", "--context", "python_version=3.11")
    (template,) = (app_folder / "cdk.out").glob("*.template.json")
    assert template.name == "Tidemill-dev-Pipeline.template.json"
    assert "shortener" not in template.read_text().lower()


def test_it_is_deployed_and_runs_a_job(app_folder: Path) -> None:
    job = json.loads(_python(app_folder, "-c", RUN_ONE_JOB))
    assert (job["state"], job["result"]) == ("succeeded", 4)
