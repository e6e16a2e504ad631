"""The app without the example: its files are deleted, and what is left is synthesised, deployed and runs a job."""

import json
from pathlib import Path

import pytest

from tests.e2e.copied_app import copy_app, run_python

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
    copy_app(tmp_path)
    (tmp_path / "functions" / "jobs" / "text_count.py").write_text(JOB_TYPE)
    return tmp_path


def test_it_is_synthesised_and_no_template_names_the_example(app_folder: Path) -> None:
    run_python(app_folder, "-m", "tidemill.local", "synth", "--stage", "dev", "--context", "python_version=3.11")
    (template,) = (app_folder / "cdk.out").glob("*.template.json")
    assert template.name == "Tidemill-dev-Pipeline.template.json"
    assert "shortener" not in template.read_text().lower()


def test_it_is_deployed_and_runs_a_job(app_folder: Path) -> None:
    job = json.loads(run_python(app_folder, "-c", RUN_ONE_JOB))
    assert (job["state"], job["result"]) == ("succeeded", 4)
