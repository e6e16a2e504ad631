"""The body of a submission: what a repeated one has in common with the first, and how large it may be."""

import hashlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.support.builders import NOW, a_job_type
from tidemill.application.features.submit_features import RULES
from tidemill.application.job_types import JobType
from tidemill.application.submission.checked_submission import body_hash_of, body_of, hash_of, read_sound_payload
from tidemill.domain.batches.batches import Opening
from tidemill.domain.errors import Fault, InvalidPayloadError, PayloadTooLargeError
from tidemill.domain.events.events import Event, Publication
from tidemill.domain.flows.flows import FlowStart
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.names import LARGEST_BATCH_BODY_BYTES, LARGEST_BODY_BYTES, Lane


def payload_of(submission: Submission, job_type: JobType) -> tuple[str, dict[str, Any]]:
    return read_sound_payload(submission, job_type, now=NOW, rules=RULES)


LEAST: dict[str, Any] = {"type": "test.job", "payload": {}}
EAST = timezone(timedelta(hours=2))
AT = datetime(2045, 3, 4, 5, 6, 7, tzinfo=UTC)
EVENT = Event(type="test.event", version=1)


@pytest.mark.parametrize(
    ("member", "body"),
    [
        ({}, {}),
        ({"payload": {"n": 1}}, {"payload": {"n": 1}}),
        ({"lane": Lane.BULK}, {"lane": "bulk"}),
        ({"delay": timedelta(seconds=90)}, {"delay": 90.0}),
        ({"delay": timedelta(0)}, {}),
        ({"run_at": AT.astimezone(EAST)}, {"run_at": "2045-03-04T05:06:07+00:00"}),
        ({"group": "a"}, {"group": "a"}),
        ({"deadline": AT.astimezone(EAST)}, {"deadline": "2045-03-04T05:06:07+00:00"}),
        ({"max_age": timedelta(minutes=1)}, {"max_age": 60.0}),
        ({"tags": ["b", "a"]}, {"tags": ["a", "b"]}),
        ({"tags": []}, {}),
        ({"supersedes": "key"}, {"supersedes": "key"}),
        ({"batch": "id"}, {"batch": "id"}),
        ({"key": "key"}, {}),
        ({"unique": Unique(period=timedelta(hours=1))}, {}),
        ({"debounce": timedelta(seconds=5), "debounce_key": "ada"}, {}),
    ],
)
def test_the_body_keeps_the_form_that_stored_jobs_have(member: dict[str, Any], body: dict[str, Any]) -> None:
    """In any other form, a repeat of what an earlier version accepted would be a conflict."""
    submission = Submission(**{"type": "test.job"} | member)

    assert body_of(submission, submission.payload) == LEAST | body
    assert body_hash_of(submission) == hash_of(LEAST | body)


def test_the_hash_is_that_of_compact_json_with_sorted_members() -> None:
    expected = hashlib.sha256(b'{"a":"\\u00e9","b":1}').hexdigest()

    assert hash_of({"b": 1, "a": "é"}) == expected


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (0, -0.0), (2**53, 2**53 + 1), (1, True)])
def test_two_numbers_that_a_handler_tells_apart_have_two_hashes(one: float, other: float) -> None:
    assert hash_of({"n": one}) != hash_of({"n": other})


def test_events_batches_and_flows_repeat_without_the_facts_of_job_types() -> None:
    event = Publication(type="event", payload={"data": 1, "consumers": ["a"]}, event=EVENT)
    batch = Opening(type="batch", payload={"facts": 1}, asked={1: ()})  # type: ignore[dict-item]
    first, second = {"name": "a"}, {"name": "b", "after": ["a"]}
    flow = FlowStart(type="flow", payload={"nodes": [second, first], "types": {}})

    assert body_of(event, event.payload)["payload"] == {"data": 1}
    assert body_of(batch, batch.payload)["payload"] == {"1": []}
    assert body_of(flow, flow.payload)["payload"] == {"nodes": [first, second]}, "their order means nothing"


def _padded(size: int) -> dict[str, str]:
    """A payload whose JSON has this size."""
    return {"p": "x" * (size - len('{"p":""}'))}


def _padded_node(size: int) -> dict[str, Any]:
    return {"nodes": [{"name": "x" * (size - len('{"nodes":[{"name":""}]}'))}], "types": {"a": {}}}


@pytest.mark.parametrize(
    ("submission", "largest"),
    [
        (lambda size: Submission(type="test.job", payload=_padded(size)), LARGEST_BODY_BYTES),
        (lambda size: Opening(type="test.job", payload={}, asked=_padded(size)), LARGEST_BODY_BYTES),
        (lambda size: FlowStart(type="test.job", payload=_padded_node(size)), LARGEST_BATCH_BODY_BYTES),
        (
            lambda size: Publication(type="test.job", payload={"consumers": ["a"]} | _padded(size), event=EVENT),
            LARGEST_BODY_BYTES,
        ),
    ],
    ids=["job", "batch", "flow", "event"],
)
def test_what_the_caller_sent_may_have_the_largest_size_and_no_more(submission: Any, largest: int) -> None:
    payload_of(submission(largest), a_job_type())

    with pytest.raises(PayloadTooLargeError) as refused:
        payload_of(submission(largest + 1), a_job_type())

    assert str(refused.value) == str(PayloadTooLargeError(largest + 1, largest))


def test_the_faults_of_the_members_and_of_the_payload_come_together() -> None:
    def parse(_payload: Any) -> None:
        raise InvalidPayloadError([Fault("/payload/n", "is missing")])

    with pytest.raises(InvalidPayloadError) as refused:
        payload_of(Submission(type="test.job", group=""), a_job_type(parse=parse))

    assert [fault.path for fault in refused.value.faults] == ["/group", "/payload/n"]


def test_the_handler_and_its_model_get_the_decoded_payload() -> None:
    seen: list[Any] = []
    submission = Submission(type="test.job", payload={"n": (1, 2), "ü": None})

    payload, value = payload_of(submission, a_job_type(parse=seen.append))

    assert payload_of(submission, replace(a_job_type(parse=seen.append), reads_payload=False))[1] == value
    assert (payload, value, seen) == ('{"n":[1,2],"\\u00fc":null}', {"n": [1, 2], "ü": None}, [value])


def test_a_model_that_changes_its_input_changes_no_payload() -> None:
    def change(payload: dict[str, Any]) -> None:
        payload["tags"] = set(payload.pop("legacy"))

    payload, value = payload_of(Submission(type="test.job", payload={"legacy": [1]}), a_job_type(parse=change))

    assert (payload, value) == ('{"legacy":[1]}', {"legacy": [1]})
