"""The API accepts the requests of the documents, and answers as they say."""

import json
import re
from typing import Any, Final

import pytest
from pydantic import BaseModel, ConfigDict

from tests.support.api_gateway import request, sign_cursors
from tests.support.deployed_functions import Mill, forget
from tests.support.document_blocks import DOCUMENTS, ROOT, page_of
from tests.support.document_commands import commands_of
from tests.support.documented_job_types import job_types_of
from tests.support.documented_requests import DocumentedRequest, json_of, json_parts, requests
from tests.support.http_events import Answer
from tidemill import Run, composition, job_type
from tidemill.application.job_types import JobTypes
from tidemill.batch.job import run_batch
from tidemill.fan_out.job import fan_out
from tidemill.flow.job import run_flow
from tidemill.http.submission_form import BatchedForm, SubmissionForm
from tidemill.testing import State

JSON: Final = {"Content-Type": "application/json"}
#: The shortener answers it.
OF_THE_APP: Final = "/links"
#: The answer to a batch shows that this type is unknown.
UNKNOWN: Final = "mail.goodby"
ID: Final = re.compile(r"/(jobs|batches|flows)/[0-9a-f-]{36}")
#: A fresh job has not come so far that one of these is possible.
TOO_EARLY: Final = re.compile(r"/(undo|redrive|retry)$")
FLOW: Final = next(each for each in page_of(ROOT / "docs/guides/flows.md").blocks if each.tag == "json").text


class AnyPayload(BaseModel):
    model_config = ConfigDict(extra="allow")


def _types() -> JobTypes:
    """Each type that a request or its answer names."""
    named = {
        name for path in DOCUMENTS for name in re.findall(r'"type": "((?!tidemill)[a-z]+\.[a-z]+)"', path.read_text())
    }
    types = {name: job_type(name, payload=AnyPayload)(_handler) for name in named - {UNKNOWN}}
    with job_types_of("events.md") as known:
        return JobTypes(types | {each.name: each for each in (fan_out, run_flow, run_batch)}, events=known.events)


def _handler(_payload: AnyPayload, _run: Run) -> None: ...


@pytest.fixture(autouse=True)
def types(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> JobTypes:
    types = _types()
    monkeypatch.setattr(composition, "known_job_types", lambda: types)
    sign_cursors(monkeypatch)
    forget()
    return types


def _post(path: str, body: Any) -> Answer:
    return request("POST", path, body=json.dumps(body).encode(), headers=JSON)


def _fresh(of: str) -> str:
    """The ID of a new job, batch or flow."""
    bodies: dict[str, Any] = {
        "jobs": {"type": "mail.welcome"},
        "batches": {},
        "flows": {"nodes": [{"name": "charge", "type": "order.charge"}]},
    }
    answer = _post(f"/{of}", bodies[of])
    assert answer.status == 202, answer
    return str(answer.body["id"])


@pytest.mark.parametrize("documented", [each for each in requests() if not each.path.startswith(OF_THE_APP)], ids=str)
def test_the_api_accepts_a_request_of_the_documents(documented: DocumentedRequest) -> None:
    path, _, query = ID.sub(lambda found: f"/{found[1]}/{_fresh(found[1])}", documented.path).partition("?")
    if "supersedes" in documented.body:
        earlier = {"type": "seat.book", "payload": {"flight": "TM7", "passenger": "ada"}}
        headers = {**JSON, "Idempotency-Key": json.loads(documented.body)["supersedes"]}
        assert request("POST", "/jobs", body=json.dumps(earlier).encode(), headers=headers).status == 202

    answer = request(
        documented.method, path, query=query, body=documented.body.encode() or None, headers=documented.headers
    )

    expected = {409} if TOO_EARLY.search(path) else {documented.status} if documented.status else {200, 202}
    assert answer.status in expected, answer
    if documented.answer:
        assert set(json_of(documented.answer.text.partition("\n\n")[2])) <= set(answer.body)


def test_a_batch_of_the_documents_is_answered_job_by_job() -> None:
    (documented,) = [each for each in requests() if each.path == "/jobs/batch"]
    assert documented.answer is not None

    answer = _post(documented.path, json.loads(documented.body))

    shown = json_of(documented.answer.text.partition("\n\n")[2])["jobs"]
    assert [each["status"] for each in answer.body["jobs"]] == [each["status"] for each in shown]
    assert answer.body["jobs"][1]["problem"]["type"] == shown[1]["problem"]["type"]


def test_the_flow_of_the_guide_fits_the_types_of_its_page(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    with job_types_of("flows.md") as known:
        types = JobTypes({name: known.get(name) for name in known.names()} | {run_flow.name: run_flow})
        monkeypatch.setattr(composition, "known_job_types", lambda: types)
        forget()
        answer = _post("/flows", json.loads(FLOW))
        assert answer.status == 202, answer
        mill.run()

    assert mill.job(answer.body["id"]).state is State.SUCCEEDED


def test_each_block_of_json_is_json_and_each_job_of_a_file_is_a_job() -> None:
    blocks = list(json_parts())
    jobs = [body for block, body in blocks if "idempotency_key" in body]

    assert len(blocks) > 20
    assert jobs
    for job in jobs:
        BatchedForm.model_validate(job)


def test_the_body_of_each_curl_is_a_job(types: JobTypes) -> None:
    commands = [command.words for command in commands_of("curl") if "-d" in command.words]
    assert commands
    for words in commands:
        SubmissionForm.model_validate_json(words[words.index("-d") + 1])
