"""Every condition of the HTTP contract, through the deployed API."""

import json
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.e2e.conftest import Deployed
from tidemill.names import LARGEST_BODY_BYTES

FLAKY = b'{"type": "demo.flaky", "payload": {"failures": 0}}'


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        pytest.param(b"{", "application/json", 400, id="not JSON"),
        pytest.param(b"\xff\xfe", "application/json", 400, id="not UTF-8"),
        pytest.param(FLAKY.replace(b"}}", b', "x": "Zo\xeb"}}'), "application/json", 400, id="Latin-1"),
        pytest.param(b'{"type": "demo.flaky", "payload": {"failures": NaN}}', "application/json", 400, id="NaN"),
        pytest.param(FLAKY, "text/plain", 415, id="wrong media type"),
        pytest.param(b'"' + b"x" * LARGEST_BODY_BYTES + b'"', "application/json", 413, id="too large"),
        pytest.param(b"[]", "application/json", 422, id="no object"),
        pytest.param(b'{"type": "no.such.type"}', "application/json", 422, id="unknown type"),
    ],
)
def test_bad_input_is_a_problem_and_stores_nothing(
    deployed: Deployed, body: bytes, content_type: str, status: int
) -> None:
    before = deployed.stored()
    answer = deployed.app.request("POST", "/jobs", body=body, content_type=content_type)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert "Traceback" not in answer.body.decode()
    assert deployed.stored() == before


def test_an_invalid_payload_is_refused_with_a_pointer_to_each_fault(deployed: Deployed) -> None:
    before = deployed.stored()
    answer = deployed.submit("demo.broken", {"order": "x"})
    assert answer.status == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["#/payload/order"]
    assert deployed.stored() == before


def test_an_unsigned_submission_is_refused(deployed: Deployed) -> None:
    before = deployed.stored()
    assert deployed.app.request("POST", "/jobs", body=FLAKY, signed=False).status == 403
    assert deployed.stored() == before


def test_the_same_key_and_body_make_one_job_however_often_they_come_at_once(deployed: Deployed) -> None:
    key = str(uuid4())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: deployed.submit("demo.flaky", {"failures": 0}, key=key), range(8)))
    assert sorted(answer.status for answer in answers) == [200] * 7 + [202]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sum(answer.headers.get("idempotent-replayed") == "true" for answer in answers) == 7


def test_the_same_key_with_another_body_is_refused(deployed: Deployed) -> None:
    key = str(uuid4())
    assert deployed.submit("demo.flaky", {"failures": 0}, key=key).status == 202
    before = deployed.stored()
    answer = deployed.submit("demo.flaky", {"failures": 1}, key=key)
    assert answer.status == 422
    assert answer.json()["type"].endswith("key-reused")
    assert deployed.stored() == before


def test_another_tenants_job_and_an_unknown_one_are_the_same_404(deployed: Deployed) -> None:
    job_id = deployed.accepted("demo.flaky", {"failures": 0})
    stranger = deployed.app.assume("stranger")
    theirs = deployed.app.request("GET", f"/jobs/{job_id}", caller=stranger)
    unknown = deployed.app.request("GET", f"/jobs/{uuid4()}")
    assert (theirs.status, unknown.status) == (404, 404)
    assert json.loads(theirs.body) == json.loads(unknown.body)
