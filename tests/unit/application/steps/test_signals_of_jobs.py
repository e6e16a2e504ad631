"""Signals to jobs: what each job does with one, which data it may carry, and what a change of the job means for it."""

from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, with_changes
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.attempt.checkpoints import checkpoints
from tidemill.application.job_filter import JobFilter
from tidemill.application.ports import Checkpoint
from tidemill.domain.errors import (
    CancelRequestedError,
    InvalidPayloadError,
    LeaseLostError,
    PayloadTooLargeError,
    SignalRefusedError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Awaited, Signal
from tidemill.domain.waiting.waiting import Cause
from tidemill.names import BATCH_TYPE

WAIT = Awaited(cause=Cause.SIGNAL, name="approval", since=NOW, until=NOW + SECOND)
JOB = a_job(tenant="t", id="j")
WAITING = with_changes(JOB, state=State.PARKED, awaited=WAIT, wait=WAIT.wait, due=WAIT.until)
GOT = Signal(name="approval", at=NOW, data='{"by":"ada"}')


@pytest.mark.parametrize(
    ("job", "name", "wakes"),
    [
        (WAITING, "approval", True),
        (WAITING, "other", False),
        (replace(JOB, state=State.RUNNING), "approval", False),
        (with_changes(JOB, signals=(replace(GOT, used=True),)), "approval", False),
    ],
)
def test_a_signal_is_kept_and_wakes_the_job_that_waits_for_it(job: Job, name: str, wakes: bool) -> None:
    jobs = InMemoryJobs(job)

    found = jobs.control().signal("t", "j", name, {"by": "bob", "n": [1]})

    assert found == jobs.get("t", "j")
    assert jobs.writes == [("signal", "j", name, '{"by":"bob","n":[1]}', NOW, wakes)]


@pytest.mark.parametrize("state", [State.QUEUED, State.SUCCEEDED])
def test_the_same_signal_again_changes_nothing(state: State) -> None:
    jobs = InMemoryJobs(with_changes(JOB, state=state, signals=(GOT,)))
    assert jobs.control().signal("t", "j", "approval", {"by": "ada"}) == jobs.get("t", "j")
    assert jobs.writes == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"signals": (GOT,)}, "the job has another value of the signal approval; the first one counts"),
        ({"state": State.SUCCEEDED}, "the job is succeeded, so the signal approval comes too late"),
        ({"state": State.DEAD}, "the job is dead, so the signal approval comes too late"),
        ({"state": State.CANCELLED}, "the job is cancelled, so the signal approval comes too late"),
        (
            {"signals": tuple(replace(GOT, name=f"s{number}") for number in range(16))},
            "the job has 16 signals; it can keep no more",
        ),
    ],
)
def test_a_signal_that_the_job_cannot_keep_is_refused(changes: dict[str, Any], text: str) -> None:
    jobs = InMemoryJobs(with_changes(JOB, **changes))

    with pytest.raises(SignalRefusedError) as refused:
        jobs.control().signal("t", "j", "approval", 1)

    assert str(refused.value) == text
    assert jobs.writes == []


def test_a_dead_batch_keeps_its_close_for_its_redrive() -> None:
    jobs = InMemoryJobs(replace(JOB, state=State.DEAD, type=BATCH_TYPE))
    assert jobs.control().signal_composite("t", "j", "closed", kept_dead=True)
    assert len(jobs.writes) == 1


def test_a_job_that_changes_at_that_moment_is_looked_at_again() -> None:
    jobs = InMemoryJobs(WAITING)
    jobs.refusals = [WriteRefusedError("signal", None)] * 2
    assert jobs.control().signal("t", "j", "approval", 1)
    assert len(jobs.writes) == 1


def test_a_signal_to_a_job_that_does_not_exist_is_refused() -> None:
    jobs = InMemoryJobs(with_changes(JOB, expires_at=NOW))
    for name in ("j", "none"):
        assert jobs.control().signal("t", name, "approval", 1) is None


@pytest.mark.parametrize(("length", "fits"), [(4_094, True), (4_095, False)])
def test_the_data_of_a_signal_is_four_kilobytes_at_most(length: int, fits: bool) -> None:
    jobs = InMemoryJobs(JOB)
    if fits:
        assert jobs.control().signal("t", "j", "approval", "x" * length)
        return
    with pytest.raises(PayloadTooLargeError) as refused:
        jobs.control().signal("t", "j", "approval", "x" * length)
    assert (refused.value.size_bytes, refused.value.limit_bytes) == (4_097, 4_096)
    assert "the signal is 4097 bytes" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "data", "path"),
    [
        ("No!", 1, "/name"),
        ("approval", float("nan"), ""),
        ("approval", {1, 2}, ""),
    ],
)
def test_a_signal_has_a_name_and_json(name: str, data: Any, path: str) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        InMemoryJobs(JOB).control().signal("t", "j", name, data)
    assert [fault.path for fault in refused.value.faults] == [path]


@pytest.mark.parametrize(("levels", "fits"), [(500, True), (501, False)])
def test_the_data_of_a_signal_is_five_hundred_levels_deep_at_most(levels: int, fits: bool) -> None:
    jobs = InMemoryJobs(JOB)
    data: Any = []
    for _ in range(levels - 1):
        data = [data]
    if fits:
        assert jobs.control().signal("t", "j", "approval", data)
        return
    with pytest.raises(InvalidPayloadError, match="the data of a signal must be JSON: it is nested deeper than 500"):
        jobs.control().signal("t", "j", "approval", data)
    assert jobs.writes == []


def test_data_that_is_too_deep_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidPayloadError):
        InMemoryJobs(JOB).control().signal("t", "j", "approval", deep)


@pytest.mark.parametrize(("length", "found"), [(36, True), (37, False)])
def test_an_id_that_is_longer_than_any_is_not_looked_for(length: int, found: bool) -> None:
    name = "x" * length
    jobs = InMemoryJobs(replace(JOB, id=name))
    assert (jobs.control().find("t", name) is not None) is found


@pytest.mark.parametrize("state", [State.CANCELLED, State.QUEUED])
def test_a_cancelled_job_is_not_cancelled_again(state: State) -> None:
    jobs = InMemoryJobs(replace(JOB, state=state))
    cancelled = jobs.control().cancel("t", "j", by="ada", reason="no use")
    assert cancelled is not None
    assert cancelled.state is State.CANCELLED
    asked = {"now": NOW, "by": "ada", "reason": "no use"}
    assert jobs.writes == ([] if state is State.CANCELLED else [("cancel", "j", asked)])


@pytest.mark.parametrize(
    ("current", "cancelled"),
    [
        (None, False),
        (replace(JOB, generation=2, created_at=NOW + SECOND), False),
        (replace(JOB, generation=2), True),
        # The same as before: its state permits no cancel.
        (JOB, False),
    ],
)
def test_a_job_that_was_found_is_cancelled_as_long_as_it_is_that_job(current: Job | None, cancelled: bool) -> None:
    jobs = InMemoryJobs(JOB)
    jobs.refusals = [WriteRefusedError("cancel", current)]

    assert jobs.control().cancel_found(JOB, JobFilter(), by="ada") is cancelled
    assert len(jobs.writes) == cancelled


class Attempts:
    """A store of checkpoints."""

    def __init__(self, answer: bool | Exception) -> None:
        self.answer = answer
        self.saved: list[tuple[Job, Checkpoint]] = []

    def checkpoint(self, job: Job, saved: Checkpoint, *, now: Any) -> bool:
        assert now == NOW
        if isinstance(self.answer, Exception):
            raise self.answer
        self.saved.append((job, saved))
        return self.answer


def saving(store: Attempts, *, under_way: Any = lambda: None) -> Any:
    return checkpoints(JOB, store, lambda: NOW, under_way=under_way)  # type: ignore[arg-type]  # what it needs


@pytest.mark.parametrize(
    ("state", "kept"), [(None, None), ({"page": 3}, '{"page":3}'), (0, "0"), (False, "false"), ([], "[]")]
)
def test_a_checkpoint_keeps_the_state_and_the_progress_of_a_run(state: Any, kept: str | None) -> None:
    store = Attempts(answer=False)
    saving(store)(state, 3, None)
    assert store.saved == [(JOB, Checkpoint(state=kept, done=3, total=None))]


def test_a_checkpoint_ends_a_run_that_was_asked_to_end_or_lost_its_lease() -> None:
    asked = Attempts(answer=True)
    with pytest.raises(CancelRequestedError):
        saving(asked)(1, None, None)
    assert len(asked.saved) == 1, "its state is saved for a redrive"
    with pytest.raises(LeaseLostError):
        saving(Attempts(WriteRefusedError("checkpoint", None)))(1, None, None)


def test_a_run_that_is_over_saves_nothing() -> None:
    def over() -> None:
        raise LeaseLostError("over")

    store = Attempts(answer=False)
    with pytest.raises(LeaseLostError):
        saving(store, under_way=over)(1, None, None)
    assert store.saved == []
