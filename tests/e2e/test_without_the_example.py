"""The app without the example: its files are deleted, and what is left is synthesised, deployed and runs a job."""

import json
from pathlib import Path

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
import json

from tidemill.local.lifecycle import deployed

with deployed() as app:
    templates = {path.name: path.read_text() for path in (app.folder / "cdk.out").glob("*.template.json")}
    job = app.tidemill("submit", "text.count", '{"text": "to be or not"}', "--wait").stdout
    print(json.dumps({"templates": templates, "job": json.loads(job)}))
"""


def test_it_is_deployed_and_runs_a_job_and_no_template_names_the_example(tmp_path: Path) -> None:
    copy_app(tmp_path)
    (tmp_path / "functions" / "jobs" / "text_count.py").write_text(JOB_TYPE)

    found = json.loads(run_python(tmp_path, "-c", RUN_ONE_JOB))

    assert (found["job"]["state"], found["job"]["result"]) == ("succeeded", 4)
    ((name, template),) = found["templates"].items()
    assert name == "Tidemill-local-Pipeline.template.json"
    assert "shortener" not in template.lower()
