"""Answers of the API that could exceed the 6 MiB of Lambda. The caller would then get an error without a reason."""

import json

import pytest

from tests.support.deployed_functions import Mill, forget
from tests.support.flow_calls import a_flow, node, seen
from tests.support.http_events import call
from tidemill.application.flows import flow_view
from tidemill.application.submission.validation import DEEPEST_STORED
from tidemill.entrypoints import control, query
from tidemill.names import FLOW_PACKAGE, Env


def test_an_answer_lists_the_first_of_very_many_faults_and_says_that_there_are_more(mill: Mill) -> None:
    unknown = {f"é{number}": 1 for number in range(15_000)}
    body = {"type": "test.scripted", "payload": {"n": "many"}}

    answer = mill.post_text(json.dumps(body | unknown, ensure_ascii=False))
    batch = mill.post_batch([body | {"x" * 250_000: 1} | dict.fromkeys(list(unknown)[:200], 1)] * 2)

    assert (answer.status, answer.body["type"]) == (422, "urn:tidemill:problem:invalid-body")
    assert answer.body["errors"][0] == {"pointer": "#/%C3%A90", "detail": "Extra inputs are not permitted"}
    assert answer.body["errors"][-1] == {"pointer": "#", "detail": "there are more faults"}
    assert len(json.dumps(answer.body)) < 32_000
    assert [each["problem"]["errors"][-1]["pointer"] for each in batch.body["jobs"]] == ["#/jobs/0", "#/jobs/1"]
    assert len(json.dumps(batch.body)) < 64_000


def test_a_large_flow_comes_in_pages(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{FLOW_PACKAGE}")
    forget()
    flow = a_flow(node("a"), node("b", "a"), node("c", "a"))
    whole = seen(flow).body
    size = len(json.dumps(whole["nodes"][:2], separators=(",", ":")))
    monkeypatch.setattr(flow_view, "LARGEST_PAGE_BYTES", size)

    first = seen(flow).body
    rest = call(query, "GET", f"/flows/{flow}", query=f"cursor={first['cursor']}").body
    wrong = call(query, "GET", f"/flows/{flow}", query="cursor=b")

    assert whole["cursor"] is None
    assert (first["counts"], rest["counts"]) == ({"pending": 2}, {"pending": 1})
    counts = whole["counts"]
    assert first | {"counts": counts} == whole | {"nodes": whole["nodes"][:2], "cursor": "2"}
    assert rest | {"counts": counts} == whole | {"nodes": whole["nodes"][2:]}
    assert (wrong.status, wrong.body["errors"][0]["pointer"]) == (422, "#/cursor")


@pytest.mark.parametrize(
    ("levels", "state"), [(DEEPEST_STORED, "succeeded"), (DEEPEST_STORED + 1, "dead"), (940, "dead")]
)
def test_a_result_that_is_stored_can_be_shown(mill: Mill, levels: int, state: str) -> None:
    result = json.loads("[" * levels + "]" * levels)
    mill.script.handler = lambda _payload, _run: result
    job = mill.accepted()
    mill.run()

    answer = mill.get(job)

    assert (answer.status, answer.body["state"]) == (200, state)
    assert answer.body["result"] == (result if state == "succeeded" else None)


def test_the_data_of_a_signal_can_be_shown(mill: Mill) -> None:
    job = mill.accepted()
    for levels, status in ((DEEPEST_STORED + 1, 422), (DEEPEST_STORED, 200)):
        answer = call(
            control,
            "POST",
            f"/jobs/{job}/signals/s",
            body="[" * levels + "]" * levels,
            headers={"content-type": "application/json"},
        )
        assert answer.status == status
    assert len(mill.get(job).body["signals"]) == 1
