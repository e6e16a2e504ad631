"""Debounced submissions over HTTP and in Python, from the burst to the run, with the code of the guide."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import TENANT
from tests.support.deployed_functions import Mill, forget
from tests.support.document_blocks import python_blocks
from tests.support.documented_job_types import GUIDES, job_types_of
from tests.support.http_events import Answer
from tidemill import composition
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Facts, Reason
from tidemill.client import Submission, Tidemill
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.errors import InvalidPayloadError
from tidemill.domain.states import State
from tidemill.sqs import messages

SECOND = timedelta(seconds=1)
#: Too large for the document.
LARGE = "x" * 1000


def burst(mill: Mill, payload: Any, **changes: Any) -> Answer:
    fields: dict[str, Any] = {"debounce_seconds": 30, "debounce_key": "7", "replace": "payload"} | changes
    return mill.post(payload, job_type="test.noop", **fields)


def items_of(mill: Mill) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = mill.table.client.scan(TableName=mill.table.name)["Items"]
    return items


def begin(mill: Mill, job_id: str) -> None:
    """Begin the job as its message does, once it is due. The queues of moto keep the machine's time."""
    assert mill.work(mill.event(messages.encode(reference_to(mill.job(job_id)), epoch=0))) == []


def test_a_burst_becomes_one_job_with_the_last_payload(mill: Mill) -> None:
    mill.stop_clock()
    first = burst(mill, {"n": 1})
    mill.late += 10 * SECOND
    second = burst(mill, {"n": 2})

    assert (first.status, second.status) == (202, 200)
    assert second.headers["Debounced"] == "true"
    assert "Idempotent-Replayed" not in second.headers
    assert second.headers["Location"] == first.headers["Location"]
    assert (second.body["id"], second.body["payload"]) == (first.body["id"], {"n": 2})
    shown = mill.get(first.body["id"]).body
    assert shown["debounce"] | {"until": None, "first_moved_at": None, "first_replaced_at": None} == {
        "key": "7",
        "until": None,
        "moves": 1,
        "first_moved_at": None,
        "replacements": 1,
        "first_replaced_at": None,
    }
    assert [entry["what"] for entry in shown["history"]] == ["accepted", "moved", "payload replaced"]
    assert shown["due"] > first.body["due"]

    mill.late += 40 * SECOND
    begin(mill, first.body["id"])

    assert mill.get(first.body["id"]).body["state"] == "succeeded"
    assert burst(mill, {"n": 3}).status == 202


def test_a_submission_without_an_age_that_is_held_back_does_not_expire(mill: Mill) -> None:
    mill.stop_clock()
    first = burst(mill, {"n": 1}, max_age_seconds=60)
    mill.late += 10 * SECOND
    second = burst(mill, {"n": 2})
    mill.late += 200 * SECOND
    begin(mill, first.body["id"])

    assert (second.body["id"], second.body["useful_until"]) == (first.body["id"], None)
    assert mill.job(first.body["id"]).state is State.SUCCEEDED


def test_a_message_that_comes_before_the_new_time_is_put_back(mill: Mill) -> None:
    mill.stop_clock()
    job_id = burst(mill, {"n": 1}).body["id"]
    mill.late += 20 * SECOND
    burst(mill, {"n": 2})
    mill.late += 15 * SECOND

    assert mill.work(mill.event(messages.encode(reference_to(mill.job(job_id)), epoch=0))) != []

    assert mill.job(job_id).state is State.QUEUED


def test_the_payload_that_was_replaced_is_deleted_in_every_state(mill: Mill) -> None:
    def payloads() -> int:
        items = mill.table.client.scan(TableName=mill.table.name)["Items"]
        return sum(item["pk"]["S"].startswith("!payload#") for item in items)

    for debounce_seconds in (30, 1800):
        for n in range(3):
            fields = {"debounce_seconds": debounce_seconds, "debounce_key": str(debounce_seconds)}
            burst(mill, {"n": n, "padding": LARGE}, **fields)
            mill.publish()

    assert payloads() == 2


def test_explain_says_until_when_and_how_often(mill: Mill) -> None:
    mill.stop_clock()
    job_id = burst(mill, {"n": 1}).body["id"]
    mill.late += SECOND
    burst(mill, {"n": 2})

    answer = explain(Facts(job=mill.job(job_id), now=mill.now()))

    assert answer.reason is Reason.DELAYED
    (said,) = [sentence for sentence in answer.sentences if "debounced" in sentence]
    assert re.fullmatch(
        r"It is debounced, and runs .+\(in 30s\)\. A submission with the debounce key 7 moves it on, "
        r"until .+\(in \d+m\) at the latest\. Submissions have moved it: 1, the first .+\. "
        r"Submissions have replaced its payload: 1, the first .+\.",
        said,
    )


def test_what_makes_no_sense_is_refused_with_each_path(mill: Mill) -> None:
    answer = burst(mill, {"n": 1}, group="g", delay_seconds=5, debounce_max_seconds=1)

    assert answer.status == 422
    assert {error["pointer"] for error in answer.body["errors"]} == {
        "#/group",
        "#/delay_seconds",
        "#/debounce_max_seconds",
    }
    assert mill.stored() == 0


def test_an_invalid_member_is_named_with_the_faults_of_the_others(mill: Mill) -> None:
    answer = burst(mill, {"n": 1}, replace="everything", group="g")

    assert answer.status == 422
    assert {error["pointer"] for error in answer.body["errors"]} == {"#/replace", "#/group"}


@pytest.mark.parametrize("wrong", [-1, 400 * 86_400, "30"])
def test_one_wrong_debounce_is_one_fault(mill: Mill, wrong: Any) -> None:
    job = {"type": "test.noop", "debounce_key": "7", "debounce_max_seconds": 60, "replace": "payload"}

    answer = burst(mill, {"n": 1}, debounce_seconds=wrong, debounce_max_seconds=60)
    (batched,) = mill.post_batch([{**job, "debounce_seconds": wrong}]).body["jobs"]

    assert answer.status == 422
    assert [error["pointer"] for error in answer.body["errors"]] == ["#/debounce_seconds"]
    assert [error["pointer"] for error in batched["problem"]["errors"]] == ["#/jobs/0/debounce_seconds"]


@pytest.mark.parametrize("replace", ["payload", None])
@pytest.mark.parametrize(
    ("item", "changes", "answered"),
    [
        ("job", {"schema": {"N": "99"}}, (503, "unavailable")),
        ("job", {"state": {"S": "bygone"}}, (500, "unreadable-job")),
        ("job", {"burst": {"M": {}}}, (500, "unreadable-job")),
        ("job", {"due": None}, (500, "unreadable-job")),
        ("lead", {"job": None}, (500, "unreadable-job")),
        ("lead", {"job": {"N": "1"}}, (500, "unreadable-job")),
    ],
)
def test_an_unreadable_item_of_its_key_refuses_a_submission_and_stays_as_it_is(
    mill: Mill, item: str, changes: dict[str, Any], answered: tuple[int, str], replace: str | None
) -> None:
    burst(mill, {"n": 1})
    job, lead = sorted(items_of(mill), key=lambda each: "state" not in each)
    damaged = {"job": job, "lead": lead}[item] | changes
    mill.table.client.put_item(
        TableName=mill.table.name, Item={name: value for name, value in damaged.items() if value is not None}
    )
    before = items_of(mill)

    answer = burst(mill, {"n": 2, "text": LARGE}, replace=replace)

    assert (answer.status, answer.body["type"].removeprefix("urn:tidemill:problem:")) == answered
    assert items_of(mill) == before
    # Once the item is repaired or its reader deployed, it takes submissions again.
    mill.table.client.put_item(TableName=mill.table.name, Item={"job": job, "lead": lead}[item])
    assert burst(mill, {"n": 3}).status == 200


def test_the_submissions_of_a_batch_may_be_one_job(mill: Mill) -> None:
    job = {"type": "test.noop", "debounce_seconds": 30, "debounce_key": "7", "replace": "payload"}

    answers = mill.post_batch([{**job, "payload": {"n": n}} for n in range(3)]).body["jobs"]

    assert [answer["status"] for answer in answers] == [202, 200, 200]
    assert len({answer["job"]["id"] for answer in answers}) == 1
    assert mill.job(answers[0]["job"]["id"]).payload.text == '{"n":2}'


def test_a_transaction_of_a_caller_cannot_have_a_debounced_job(mill: Mill) -> None:
    client = Tidemill.at(mill.table.name, tenant=TENANT, job_packages=["tests.support.jobs"], client=mill.table.client)

    with pytest.raises(InvalidPayloadError, match="/debounce_seconds"):
        client.submission_item(Submission(type="test.noop", payload={"n": 1}, debounce=SECOND))


def test_the_code_of_the_guide_runs(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    _, submit = python_blocks(GUIDES / "debounce.md")
    defined: dict[str, Any] = {}
    exec(submit, defined)
    mill.stop_clock()
    with job_types_of("debounce.md") as known:
        monkeypatch.setattr(composition, "known_job_types", lambda: known)
        forget()
        client = Tidemill.at(
            mill.table.name, tenant=TENANT, job_packages=["debounce_md"], client=mill.table.client, listed=False
        )

        made = [defined["customer_changed"](client, "7", text) for text in ("a", "ab", "abc")]
        assert made == [True, False, False]
        (item,) = [item for item in mill.table.client.scan(TableName=mill.table.name)["Items"] if "state" in item]
        job_id = item["pk"]["S"].rpartition("#")[2]
        mill.late += 60 * SECOND
        begin(mill, job_id)

        assert json.loads(mill.job(job_id).result or "") == {"indexed": "abc"}
