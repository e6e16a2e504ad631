"""The opening of a batch, its close and its cancel: the documents, and what is refused."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, a_job_type
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.batches.batches import cancel_batch, close_batch, open_batch
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.domain.batches.batches import CLOSED, LONGEST_OPEN, Batch
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    JobFileError,
    KeyReusedError,
    SignalRefusedError,
    UnloadedJobTypeError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.waiting.signals import Awaited, Signal
from tidemill.domain.waiting.waiting import Cause
from tidemill.names import BATCH_TYPE, Lane


def strict(payload: Any) -> Any:
    if payload.get("n", 0) < 0:
        raise InvalidPayloadError([Fault("/payload/n", "must not be negative")])
    return payload


OPENING = a_job_type(name=BATCH_TYPE)
PLAIN = a_job_type(name="plain", parse=strict)
RICH = replace(
    a_job_type(name="rich"),
    lane=Lane.DEFAULT,
    blocks=True,
    max_age=timedelta(minutes=1),
    retention=timedelta(days=2),
)
UNIQUE = replace(a_job_type(name="unique"), unique=timedelta(hours=1))
TYPES = (OPENING, PLAIN, RICH, UNIQUE)


@pytest.mark.parametrize(
    ("callback", "stored"),
    [
        (Submission(type="plain"), {"type": "plain", "lane": "default"}),
        (Submission(type="plain", payload={"n": 1}), {"type": "plain", "payload": {"n": 1}, "lane": "default"}),
        (Submission(type="plain", lane=Lane.BULK), {"type": "plain", "lane": "bulk"}),
        (Submission(type="plain", group="g"), {"type": "plain", "group": "g", "lane": "default"}),
        (Submission(type="plain", tags=("b", "a")), {"type": "plain", "tags": ["a", "b"], "lane": "default"}),
        (
            Submission(type="plain", max_age=timedelta(seconds=1.5)),
            {"type": "plain", "max_age_seconds": 1.5, "lane": "default"},
        ),
        (
            Submission(type="rich"),
            {"type": "rich", "lane": "default", "blocks": True, "max_age_seconds": 60, "retention_seconds": 172_800},
        ),
        (
            Submission(type="rich", lane=Lane.BULK, max_age=2 * SECOND),
            {"type": "rich", "lane": "bulk", "blocks": True, "max_age_seconds": 2, "retention_seconds": 172_800},
        ),
    ],
)
@pytest.mark.parametrize("when", ["on_success", "on_failure", "on_complete"])
def test_a_batch_keeps_its_callbacks_with_the_facts_of_their_types(
    when: str, callback: Submission, stored: dict[str, Any]
) -> None:
    asked: dict[str, Any] = {when: callback}

    accepted = open_batch(Batch(**asked), InMemoryJobs().submit(*TYPES), tenant="t", trace="pia")

    assert json.loads(accepted.job.payload.text or "") == {when: stored}
    assert (accepted.job.type, accepted.job.trace, accepted.replayed) == (BATCH_TYPE, "pia", False)


def test_a_batch_has_its_own_tags_and_no_callback_if_none_is_asked_for() -> None:
    job = open_batch(Batch(tags=("b", "a")), InMemoryJobs().submit(*TYPES), tenant="t", trace="pia").job
    assert (job.payload.text, job.tags) == ("{}", ("a", "b"))


def test_the_same_key_opens_one_batch_also_after_a_type_has_changed() -> None:
    jobs = InMemoryJobs()
    batch = Batch(on_success=Submission(type="plain"), key="k")
    first = open_batch(batch, jobs.submit(*TYPES), tenant="t", trace="pia")
    assert first.job.id == keyed_job_id("t", "batch/k"), "no job of the key k has it"

    for types in ([OPENING, replace(PLAIN, lane=Lane.BULK)], [OPENING]):
        again = open_batch(batch, jobs.submit(*types), tenant="t", trace="joe")
        assert (again.job, again.replayed) == (first.job, True)
        other = replace(batch, on_success=Submission(type="plain", payload={"n": 1}))
        with pytest.raises(KeyReusedError):
            open_batch(other, jobs.submit(*types), tenant="t", trace="joe")
    with pytest.raises(InvalidPayloadError):
        open_batch(replace(batch, key="another"), jobs.submit(OPENING), tenant="t", trace="joe")


def test_each_batch_without_a_key_is_another() -> None:
    jobs = InMemoryJobs()
    for _ in range(2):
        assert not open_batch(Batch(), jobs.submit(*TYPES), tenant="t", trace="pia").replayed
    assert len(jobs.writes) == 2


@pytest.mark.parametrize(
    "change", [{"lane": Lane.BULK}, {"max_age": SECOND}, {"group": "g"}, {"tags": ("a",)}, {"payload": {"n": 1}}]
)
def test_a_key_stands_for_each_option_of_a_callback(change: dict[str, Any]) -> None:
    jobs = InMemoryJobs()
    plain, other = Submission(type="plain"), Submission(type="plain", **change)
    open_batch(Batch(on_success=plain, key="k"), jobs.submit(*TYPES), tenant="t", trace="pia")
    with pytest.raises(KeyReusedError):
        open_batch(Batch(on_success=other, key="k"), jobs.submit(*TYPES), tenant="t", trace="pia")


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"type": "none"}, ["/on_failure/type"]),
        ({"payload": {"n": -1}}, ["/on_failure/payload/n"]),
        ({"payload": {"text": "x" * 300_000}}, ["/on_failure/payload"]),
        ({"lane": Lane.CRITICAL}, ["/on_failure/lane"]),
        ({"key": "k"}, ["/on_failure/idempotency_key"]),
        ({"unique": Unique(period=SECOND)}, ["/on_failure/unique"]),
        ({"delay": SECOND}, ["/on_failure/delay_seconds"]),
        ({"run_at": NOW}, ["/on_failure/run_at"]),
        ({"deadline": NOW + SECOND}, ["/on_failure/deadline"]),
        ({"supersedes": "k"}, ["/on_failure/supersedes"]),
        ({"batch": "b"}, ["/on_failure/batch"]),
        ({"debounce": SECOND}, ["/on_failure/debounce_seconds"]),
        ({"type": "unique"}, ["/on_failure/type"]),
        # What a callback may not have is named alone.
        ({"key": "k", "delay": SECOND, "type": "none"}, ["/on_failure/idempotency_key", "/on_failure/delay_seconds"]),
    ],
)
def test_each_fault_of_a_callback_has_its_path(changes: dict[str, Any], paths: list[str]) -> None:
    jobs = InMemoryJobs()
    callback = Submission(**{"type": "plain"} | changes)

    with pytest.raises(InvalidPayloadError) as refused:
        open_batch(
            Batch(on_success=Submission(type="plain"), on_failure=callback),
            jobs.submit(*TYPES),
            tenant="t",
            trace="pia",
        )

    assert [fault.path for fault in refused.value.faults] == paths
    assert jobs.writes == []


def test_a_batch_waits_for_a_broken_job_file() -> None:
    broken = JobFileError("jobs.py:1: SyntaxError", names=("mail",))
    submit = InMemoryJobs().submit(*TYPES, faults=[broken])
    with pytest.raises(UnloadedJobTypeError):
        open_batch(
            Batch(on_success=Submission(type="mail"), on_failure=Submission(type="plain", key="k")),
            submit,
            tenant="t",
            trace="pia",
        )


def test_a_repeated_opening_finds_its_batch_though_a_type_is_not_loaded() -> None:
    jobs = InMemoryJobs()
    batch = Batch(on_success=Submission(type="plain"), key="imports-7")
    first = open_batch(batch, jobs.submit(*TYPES), tenant="t", trace="pia")
    broken = JobFileError("jobs.py:1: SyntaxError", names=("plain",))

    again = open_batch(batch, jobs.submit(OPENING, RICH, faults=[broken]), tenant="t", trace="pia")

    assert (again.job, again.replayed) == (first.job, True)


WAIT = Awaited(cause=Cause.SIGNAL, name=CLOSED, since=NOW, until=NOW + SECOND)
PARKED = {"state": State.PARKED, "awaited": WAIT, "wait": WAIT.wait, "due": WAIT.until}


def a_batch(**changes: Any) -> Job:
    return a_job(**{"id": "b", "tenant": "t", "type": BATCH_TYPE} | changes)


def signalled(*names: str) -> tuple[Signal, ...]:
    return tuple(Signal(name=name, at=NOW, data="true") for name in names)


@pytest.mark.parametrize("state", [PARKED, {"state": State.RUNNING}, {"state": State.DEAD}])
def test_a_close_is_a_signal_that_also_a_dead_batch_keeps(state: dict[str, Any]) -> None:
    jobs = InMemoryJobs(a_batch(**state))

    closed = close_batch(jobs.control(), "t", "b", now=NOW)

    assert closed is not None
    assert closed.signals.received == signalled(CLOSED)
    assert jobs.writes == [("signal", "b", CLOSED, "true", NOW, state is PARKED)]


@pytest.mark.parametrize(
    ("changes", "now"),
    [({"signals": signalled(CLOSED)}, NOW), ({"signals": signalled(CANCELLED)}, NOW), ({}, NOW + LONGEST_OPEN)],
)
def test_a_second_close_returns_the_batch_as_it_is(changes: dict[str, Any], now: datetime) -> None:
    jobs = InMemoryJobs(a_batch(**changes))

    assert close_batch(jobs.control(), "t", "b", now=now) == a_batch(**changes)
    assert jobs.writes == []


def test_a_cancel_is_followed_by_the_close_that_an_open_batch_waits_for() -> None:
    jobs = InMemoryJobs(a_batch(**PARKED))

    cancelled = cancel_batch(jobs.control(), "t", "b")

    assert cancelled == jobs.get("t", "b")
    assert jobs.writes == [
        ("signal", "b", CANCELLED, "true", NOW, False),
        ("signal", "b", CLOSED, "true", NOW, True),
    ]
    assert cancel_batch(jobs.control(), "t", "b") == cancelled, "it may be repeated"
    assert len(jobs.writes) == 2


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.DEAD])
def test_a_batch_that_has_ended_takes_no_cancel(state: State) -> None:
    jobs = InMemoryJobs(a_batch(state=state))
    with pytest.raises(SignalRefusedError):
        cancel_batch(jobs.control(), "t", "b")
    assert jobs.writes == []


def test_a_batch_that_has_succeeded_takes_no_close() -> None:
    jobs = InMemoryJobs(a_batch(state=State.SUCCEEDED))
    with pytest.raises(SignalRefusedError):
        close_batch(jobs.control(), "t", "b", now=NOW)


def test_only_a_batch_of_the_tenant_is_closed_or_cancelled() -> None:
    jobs = InMemoryJobs(a_job(id="job", tenant="t"), a_batch(tenant="another"))
    for name in ("job", "b", "none"):
        assert close_batch(jobs.control(), "t", name, now=NOW) is None
        assert cancel_batch(jobs.control(), "t", name) is None
    assert jobs.writes == []
