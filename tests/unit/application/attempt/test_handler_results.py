"""From the value of a handler to the outcome of its run: each kind, each size, and what cannot be stored."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import TENANT, a_job, a_job_type, types_of
from tests.support.single_job import Clock, tools
from tidemill.application.attempt.handler_results import checkpoint_text, outcome_of_error, outcome_of_value
from tidemill.application.event_types import EventType
from tidemill.application.job_types import JobTypes
from tidemill.application.submission.submit import Submit
from tidemill.application.submission.validation import stored_json
from tidemill.domain.attempt.outcomes import Awaits, Continued, Failed, Outcome, Snoozed, Stopped, Succeeded
from tidemill.domain.attempt.return_values import Cancelled, Continue, Done, GiveUp, Snooze, WaitFor
from tidemill.domain.batches.batches import BatchFailed
from tidemill.domain.errors import (
    CancelRequestedError,
    CheckpointTooLargeError,
    JobFileError,
    KeyReusedError,
    UnloadedJobTypeError,
)
from tidemill.domain.events.events import Event
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.submission.submission import Submission
from tidemill.domain.waiting.waiting import Cause
from tidemill.in_memory.single_job import OneJob
from tidemill.names import EVENT_TYPE

PARENT = a_job(id="parent", attempt=1)
MINUTE = timedelta(minutes=1)
TOO_DEEP: list[Any] = []
for _ in range(100_000):
    TOO_DEEP = [TOO_DEEP]


def _submit(job_types: JobTypes | None = None) -> Submit:
    return tools(OneJob(PARENT), job_types or types_of(a_job_type()), Clock()).submit  # type: ignore[arg-type]


def _outcome(value: Any, job: Job = PARENT) -> Outcome:
    return outcome_of_value(value, job, _submit())


@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (None, Succeeded()),
        (0, Succeeded(result="0")),
        ({"é": [1, None]}, Succeeded(result='{"\\u00e9":[1,null]}')),
        (Done(), Succeeded()),
        (Done(result=False), Succeeded(result="false")),
        (Done(writes=[{"Put": {}}]), Succeeded(writes=({"Put": {}},))),
        (Snooze(MINUTE), Snoozed(after=MINUTE)),
        (Continue(), Continued(checkpoint=None)),
        (Continue({"n": 1}, after=MINUTE), Continued(checkpoint='{"n":1}', after=MINUTE)),
        (WaitFor("pay", MINUTE), Awaits(cause=Cause.SIGNAL, name="pay", after=MINUTE)),
        (
            WaitFor("pay", MINUTE, checkpoint=[1]),
            Awaits(cause=Cause.SIGNAL, name="pay", after=MINUTE, checkpoint="[1]"),
        ),
        (GiveUp("no"), Failed(error_class="GiveUp", message="no", death=DeathReason.GAVE_UP)),
        (Cancelled(), Stopped()),
    ],
)
def test_each_value_has_its_outcome(value: Any, outcome: Outcome) -> None:
    assert _outcome(value) == outcome


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (float("nan"), "a result must be JSON: "),
        (object(), "a result must be JSON: "),
        (TOO_DEEP, "a result must be JSON: "),
        # One level more than each reader takes.
        (json.loads("[" * 501 + "]" * 501), "a result must be JSON: "),
        ("x" * (32 * 1024 - 1), f"the result is {32 * 1024 + 1} bytes; a job may keep at most {32 * 1024}"),
        ({1: "a", "1": "b"}, "a result must be JSON: the name 1 of the value is not text"),
        (Done({"a": [{None: 1}]}), "a result must be JSON: the name None of /a/0 is not text"),
        (Continue({1: 2}), "a checkpoint must be JSON: the name 1 of the value is not text"),
        (Continue(object()), "a checkpoint must be JSON: "),
        (Continue(float("inf")), "a checkpoint must be JSON: "),
        (Continue(TOO_DEEP), "a checkpoint must be JSON: "),
        (Continue("x" * (8 * 1024 - 1)), f"the checkpoint is {8 * 1024 + 1} bytes; a job may save at most {8 * 1024}"),
        (WaitFor("pay", MINUTE, checkpoint=object()), "a checkpoint must be JSON: "),
        (Done(then=[Submission(type="unknown")]), "a follow-up job was refused: "),
        (Done(then=[Submission(type="test.job", tags=("NO",))]), "a follow-up job was refused: "),
        (Done(then=[Submission(type="test.job", payload={"n": "x" * 300_000})]), "a follow-up job was refused: "),
        (Done(events=[Event(type="unknown")]), "a follow-up job was refused: "),
        (Done(undo=Submission(type="unknown")), "the undo was refused: "),
    ],
)
def test_what_cannot_be_stored_kills_the_job_and_says_why(value: Any, says: str) -> None:
    outcome = _outcome(value)

    assert isinstance(outcome, Failed)
    assert (outcome.error_class, outcome.death) == ("ResultError", DeathReason.RESULT_UNSTORABLE)
    assert outcome.message.startswith(says)


@pytest.mark.parametrize(
    ("value", "text"),
    [("x" * (32 * 1024 - 2), "result"), (Continue("x" * (8 * 1024 - 2)), "checkpoint")],
    ids=["result", "checkpoint"],
)
def test_the_largest_result_and_checkpoint_are_stored(value: Any, text: str) -> None:
    size = len(getattr(_outcome(value), text))

    assert size == (32 if text == "result" else 8) * 1024
    assert checkpoint_text("x" * 8190) == '"' + "x" * 8190 + '"'
    with pytest.raises(CheckpointTooLargeError):
        checkpoint_text("x" * 8191)


def test_json_is_compact_and_ascii() -> None:
    assert stored_json({"a": [1, "é"]}) == '{"a":[1,"\\u00e9"]}'


def _then(*submissions: Submission, job: Job = PARENT) -> Sequence[Job]:
    outcome = _outcome(Done(then=list(submissions)), job)
    assert isinstance(outcome, Succeeded)
    return outcome.follow_ups


def test_follow_ups_are_jobs_of_the_same_tenant_in_their_order() -> None:
    first, second = _then(Submission(type="test.job", payload={"n": 1}), Submission(type="test.job", payload={"n": 2}))

    assert (first.payload.text, second.payload.text) == ('{"n":1}', '{"n":2}')
    assert first.id != second.id
    assert {(job.tenant, job.parent) for job in (first, second)} == {(TENANT, "parent")}


def test_events_are_published_after_the_follow_ups() -> None:
    paid = EventType(
        name="paid", version=1, read=lambda _: {}, schema=dict, written_schema=dict, names={}, file="", line=1
    )
    types = {name: a_job_type(name=name) for name in ("test.job", EVENT_TYPE)}
    submit = _submit(JobTypes(types, events={("paid", 1): paid}))

    outcome = outcome_of_value(Done(then=[Submission(type="test.job")], events=[Event(type="paid")]), PARENT, submit)

    assert isinstance(outcome, Succeeded)
    assert [job.type for job in outcome.follow_ups] == ["test.job", EVENT_TYPE]


def test_follow_ups_with_one_key_and_one_body_are_one_job() -> None:
    same = Submission(type="test.job", key="k", payload={"n": 1})

    assert len(_then(same, same, Submission(type="test.job"))) == 2


def test_two_bodies_with_one_key_are_refused() -> None:
    with pytest.raises(KeyReusedError, match="the idempotency key of another follow-up job, but another body"):
        _then(Submission(type="test.job", key="k"), Submission(type="test.job", key="k", payload={"n": 1}))


def test_a_follow_up_may_be_the_job_itself_if_its_body_is_the_same() -> None:
    (job,) = _then(Submission(type="test.job", key="k"))

    assert _then(Submission(type="test.job", key="k"), job=job) == ()
    with pytest.raises(KeyReusedError, match="the idempotency key of its parent, but another body"):
        _then(Submission(type="test.job", key="k", payload={"n": 1}), job=job)


@pytest.mark.parametrize("value", [Done(then=[Submission(type="lost")]), Done(undo=Submission(type="lost"))])
def test_a_type_of_a_broken_job_file_is_not_a_fault_of_the_job(value: Done) -> None:
    """The run is given back, until a version of the code has the type."""
    job_types = JobTypes({"test.job": a_job_type()}, faults=[JobFileError("lost.py is broken", ["lost"])])

    with pytest.raises(UnloadedJobTypeError):
        outcome_of_value(value, PARENT, _submit(job_types))


def test_a_batch_that_failed_keeps_its_counts_and_has_its_follow_ups() -> None:
    outcome = _outcome(BatchFailed(reason="2 of 3 failed", checkpoint={"n": 2}, then=[Submission(type="test.job")]))

    assert isinstance(outcome, Failed)
    assert (outcome.error_class, outcome.message, outcome.death, outcome.checkpoint) == (
        "BatchFailed",
        "2 of 3 failed",
        DeathReason.GAVE_UP,
        '{"n":2}',
    )
    assert [job.type for job in outcome.follow_ups] == ["test.job"]


def test_a_failure_has_the_traceback_of_its_handler_and_other_errors_have_none() -> None:
    failed = outcome_of_error(ValueError("no such row"))

    assert isinstance(failed, Failed)
    assert "no such row" in failed.traceback
    assert outcome_of_error(CancelRequestedError()) == Stopped()
    assert len(failed.traceback) <= 1500
