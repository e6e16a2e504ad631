"""What a handler says would undo its effect, as the document of its job keeps it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import TENANT, a_job, a_job_type, types_of, with_changes
from tests.support.single_job import Clock, tools
from tidemill.application.corrections.recorded_undo import recorded_undo
from tidemill.domain.corrections.undo import LARGEST_UNDO_BYTES, Undo
from tidemill.domain.errors import Fault, InvalidPayloadError, PayloadTooLargeError, UnknownJobTypeError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.in_memory.single_job import OneJob
from tidemill.names import Lane

DONE = a_job(tenant=TENANT, group="a")
MINUTE = timedelta(minutes=1)
TYPE = replace(a_job_type(name="test.undo"), blocks=True, retention=timedelta(days=2))
LEAST = Undo(type="test.undo", lane=Lane.DEFAULT, payload="{}", blocks=True, retention=timedelta(days=2))


def recorded(done: Job = DONE, /, **asked: Any) -> Undo:
    submit = tools(OneJob(done), types_of(TYPE), Clock()).submit  # type: ignore[arg-type]
    return recorded_undo(Submission(**{"type": "test.undo"} | asked), done, submit)


@pytest.mark.parametrize(
    ("asked", "undo"),
    [
        ({}, LEAST),
        ({"payload": {"n": 1}}, replace(LEAST, payload='{"n":1}')),
        ({"lane": Lane.BULK}, replace(LEAST, lane=Lane.BULK)),
        ({"tags": ["b", "a"]}, replace(LEAST, tags=("a", "b"))),
        ({"max_age": MINUTE}, replace(LEAST, max_age=MINUTE)),
    ],
)
def test_an_undo_keeps_what_its_submission_and_its_type_say(asked: dict[str, Any], undo: Undo) -> None:
    assert recorded(**asked) == undo


def test_the_undo_of_a_job_without_a_group_blocks_none() -> None:
    assert recorded(with_changes(DONE, group=None)) == replace(LEAST, blocks=False)


def test_the_largest_payload_of_an_undo_is_kept_and_a_larger_one_is_refused() -> None:
    text = "x" * (LARGEST_UNDO_BYTES - len('{"p":""}'))

    assert len(recorded(payload={"p": text}).payload) == LARGEST_UNDO_BYTES
    with pytest.raises(PayloadTooLargeError) as refused:
        recorded(payload={"p": text + "x"})
    assert str(refused.value) == str(PayloadTooLargeError(LARGEST_UNDO_BYTES + 1, LARGEST_UNDO_BYTES))


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/idempotency_key", {"key": ""}),
        ("/unique", {"unique": Unique(period=MINUTE)}),
        ("/group", {"group": "a"}),
        ("/delay_seconds", {"delay": timedelta(0)}),
        ("/run_at", {"run_at": datetime(2045, 1, 1, tzinfo=UTC)}),
        ("/deadline", {"deadline": datetime(2045, 1, 1, tzinfo=UTC)}),
        ("/supersedes", {"supersedes": "key"}),
        ("/batch", {"batch": "id"}),
        ("/debounce_seconds", {"debounce": timedelta(0)}),
    ],
)
def test_what_follows_from_the_undone_job_may_not_be_given(path: str, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        recorded(**asked)
    assert refused.value.faults == (Fault(path, "an undo takes none"),)


def test_each_fault_is_named_at_once() -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        recorded(key="key", batch="id")
    assert [fault.path for fault in refused.value.faults] == ["/idempotency_key", "/batch"]


def test_an_undo_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(UnknownJobTypeError):
        recorded(type="test.unknown")
