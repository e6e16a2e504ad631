"""One run of a handler in memory: what comes before and after it, and what its end means for others."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import INVOCATION, NOW, SECOND, a_job, a_job_type
from tests.support.configurations import configured, paused
from tests.support.one_job import Dropped, attempt_at
from tests.support.single_job import Clock, carried_out
from tidemill import Cancelled, Continue, Done, GiveUp, Snooze, WaitFor
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.attempt.participant import Called, SoleParticipant
from tidemill.application.attempt.settle import Settle
from tidemill.application.breakers.breaker_use import CURRENT_USE
from tidemill.application.ports import Entered, LimitSlot
from tidemill.application.waiting.release import Releaser
from tidemill.domain.attempt.outcomes import Parked, Settlement, Succeeded
from tidemill.domain.breakers.breaker import BreakerPolicy, BreakerState
from tidemill.domain.errors import (
    BatchCallError,
    JobTimeoutError,
    StoreUnavailableError,
    TransactionConflictError,
    UnloadedJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import Cause, Line, Wait
from tidemill.in_memory.single_job import OneJob, Unlimited

DOWN = ConnectionError("down")
LATE = JobTimeoutError("it took longer than its worker had time")


def nothing(_payload: Any, _run: Any) -> None:
    pass


def raising(error: Exception) -> Callable[[Any, Any], Any]:
    def handler(_payload: Any, _run: Any) -> None:
        raise error

    return handler


class Downstream:
    """`Breakers` with one downstream, which note the results of its calls."""

    def __init__(self, *, opened: bool = False, admits: bool = True) -> None:
        self.opened = opened
        self.admitted = admits
        self.results: list[str] = []

    def admits(self, _policy: BreakerPolicy, _job: Job) -> bool:
        return self.admitted

    def would_admit(self, _policy: BreakerPolicy) -> bool:
        return self.admitted

    def blocks(self, _name: str) -> bool:
        return self.opened

    def forced(self, _name: str) -> BreakerState | None:
        return None

    def hear_others(self, _policy: BreakerPolicy, *, until: datetime) -> None:
        del until

    def succeeded(self, _policy: BreakerPolicy, _job: Job, *, counts: bool = True) -> bool:
        del counts
        self.results.append("succeeded")
        return True

    def failed(self, _policy: BreakerPolicy, _job: Job, *, call: str, error: str, counts: bool = True) -> bool:
        del call, counts
        self.results.append(error)
        return True

    def give_up(self, _name: str, _job: Job) -> None:
        self.results.append("given up")


def calling(handler: Callable[[Any, Any], Any] = nothing) -> Any:
    """A type that depends on the downstream `pay`."""
    return replace(a_job_type(handler), depends_on=(BreakerPolicy(name="pay"),))


BY_BREAKER = Wait(cause=Cause.BREAKER, key="pay", since=NOW)


def wrapped(error: Exception) -> BatchCallError:
    return BatchCallError(error, 3)


@pytest.mark.parametrize("error", [DOWN, wrapped(DOWN)], ids=["alone", "of a call with others"])
def test_a_job_that_failed_at_an_open_downstream_waits_for_it(clock: Clock, error: Exception) -> None:
    breakers, store = Downstream(opened=True), OneJob(a_job())

    report = carried_out(attempt_at(store, calling(raising(error)), clock, breakers=breakers))

    assert (report.ending, store.job.state, store.job.wait) == (Ending.PARKED, State.PARKED, BY_BREAKER)
    assert breakers.results == ["ConnectionError"]
    assert CURRENT_USE.get() is None, "nothing that this thread runs later belongs to the run"


def test_a_failure_at_a_downstream_that_works_is_that_of_the_job(clock: Clock) -> None:
    store = OneJob(a_job())
    report = carried_out(attempt_at(store, calling(raising(DOWN)), clock, breakers=Downstream()))
    assert (report.ending, report.error) == (Ending.RETRYING, "ConnectionError: down")


def test_a_job_whose_downstream_is_open_is_not_run(clock: Clock) -> None:
    runs: list[int] = []
    breakers, store = Downstream(opened=True, admits=False), OneJob(a_job())
    job_type = calling(lambda _payload, _run: runs.append(1))

    assert carried_out(attempt_at(store, job_type, clock, breakers=breakers)).ending is Ending.PARKED
    assert (store.job.wait, runs, breakers.results) == (BY_BREAKER, [], [])


def test_a_job_whose_time_is_up_before_its_handler_blames_no_downstream(clock: Clock) -> None:
    class Slow(Downstream):
        def admits(self, policy: BreakerPolicy, job: Job) -> bool:
            clock.now = NOW + INVOCATION
            return super().admits(policy, job)

    breakers, store = Slow(opened=True), OneJob(a_job())

    assert carried_out(attempt_at(store, calling(), clock, breakers=breakers)).ending is Ending.RETRYING
    assert breakers.results == ["given up"]


@pytest.mark.parametrize(
    ("value", "worked"),
    [
        (None, True),
        (Done(1), True),
        (Continue(1), True),
        (Snooze(SECOND), False),
        (WaitFor("approval", timeout=SECOND), False),
        (GiveUp("no"), False),
        (Cancelled(), False),
    ],
)
def test_only_a_run_that_did_its_work_says_that_its_downstream_works(clock: Clock, value: Any, worked: bool) -> None:
    breakers = Downstream()
    carried_out(attempt_at(OneJob(a_job()), calling(lambda *_: value), clock, breakers=breakers))
    assert breakers.results == (["succeeded"] if worked else ["given up"])


class Acting(Unlimited):
    """Limits that act on each call for a slot, and on each line that they list."""

    def __init__(self, listing: Callable[[], Any] = lambda: None) -> None:
        self.entering: Callable[[], Any] = lambda: None
        self._listing = listing

    def acquire(self, slot: LimitSlot, *, now: datetime) -> Entered | datetime | Line:
        self.entering()
        return super().acquire(slot, now=now)

    def list_line(self, *_line: Any, **_more: Any) -> None:
        self._listing()


def test_a_run_whose_time_was_up_before_its_handler_blames_no_downstream(clock: Clock) -> None:
    breakers, store, runs = Downstream(opened=True), OneJob(a_job()), list[int]()
    job_type = replace(calling(lambda *_: runs.append(1)), limit=Limit(concurrency=1))
    limits = Acting()
    attempt = attempt_at(store, job_type, clock, breakers=breakers, limits=limits)
    limits.entering = attempt.expire

    assert carried_out(attempt).ending is Ending.RETRYING
    assert (breakers.results, runs) == (["given up"], [])


def unreachable() -> None:
    raise StoreUnavailableError("down")


@pytest.mark.parametrize(("limits", "ending"), [(Acting(), Ending.PARKED), (Acting(unreachable), Ending.RETRYING)])
def test_a_run_whose_time_was_up_at_an_open_downstream_waits_for_it_if_its_line_is_known(
    clock: Clock, limits: Acting, ending: Ending
) -> None:
    breakers, store = Downstream(opened=True), OneJob(a_job())
    job_type = calling(lambda *_: attempt.expire())
    attempt = attempt_at(store, job_type, clock, breakers=breakers, limits=limits)

    assert carried_out(attempt).ending is ending
    assert breakers.results == ["JobTimeoutError"]


class Superseded:
    """A `Superseder` whose earlier job still has its effect."""

    def ready(self, _job: Job) -> bool:
        return False


def unloaded(_payload: Any, _run: Any) -> None:
    raise UnloadedJobTypeError("mail", (), "SyntaxError")


def busy(_payload: Any, _run: Any) -> None:
    raise TransactionConflictError("busy")


@pytest.mark.parametrize(
    ("handler", "changes", "ending", "held"),
    [
        (None, {"configuration": lambda: configured(paused("type=test.job"))}, Ending.PARKED, HoldCause.PAUSE),
        (None, {"superseder": Superseded}, Ending.HELD, HoldCause.UNDO),
        (unloaded, {}, Ending.PARKED, HoldCause.TYPE),
        (busy, {}, Ending.HELD, HoldCause.OUTAGE),
    ],
    ids=["paused", "not undone so far", "its follow-up is not loaded", "transactions of others"],
)
def test_a_job_that_cannot_run_through_no_fault_of_its_own_keeps_its_attempt(
    clock: Clock, handler: Any, changes: dict[str, Any], ending: Ending, held: HoldCause
) -> None:
    runs: list[int] = []
    store = OneJob(a_job(supersedes="k"))
    job_type = a_job_type(handler or (lambda _payload, _run: runs.append(1)))

    assert carried_out(attempt_at(store, job_type, clock, **changes)).ending is ending
    assert (store.job.holds.cause, store.job.attempt, store.job.errors, runs) == (held, 0, (), [])


class Participant(SoleParticipant):
    """It notes what its attempt does, in this order."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.error: Exception | None = None

    def call(self, called: Called) -> Any:
        self.did.append("call")
        return super().call(called)

    def settle(self, job: Job, settlement: Settlement, *, now: datetime, alone: Settle) -> Sequence[Job]:
        self.did.append("settle")
        if self.error:
            raise self.error
        return super().settle(job, settlement, now=now, alone=alone)

    def leave_call(self) -> None:
        self.did.append("leave call")

    def leave_settle(self) -> None:
        self.did.append("leave settle")


@pytest.mark.parametrize("refused", [False, True])
def test_an_attempt_keeps_no_other_of_its_batch_waiting_and_gives_its_slot_back_last(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    participant = Participant()
    participant.error = WriteRefusedError(Write.SETTLE, None) if refused else None
    monkeypatch.setattr(Releaser, "leave", lambda *_, **__: participant.did.append("leave slot"))
    job_type = replace(a_job_type(), limit=Limit(concurrency=1))

    @contextmanager
    def scope(job: Job) -> Iterator[None]:
        participant.did.append(f"begin {job.id}")
        yield
        participant.did.append("end")

    attempt = attempt_at(OneJob(a_job(id="j")), job_type, clock, participant=participant, settle_scope=scope)
    carried_out(attempt)

    assert participant.did == ["call", "leave call", "begin j", "settle", "end", "leave settle", "leave slot"]


def test_a_job_that_was_cancelled_as_it_was_to_be_parked_is_not_looked_for_in_its_line(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Job] = []
    monkeypatch.setattr(Releaser, "look_again", lambda _self, job: looks.append(job))
    store = OneJob(a_job(cancel_requested_at=NOW))
    attempt = attempt_at(store, a_job_type(), clock)
    assert attempt.claim(remaining=SECOND)

    attempt.finish(Parked(BY_BREAKER))

    assert attempt.report is not None
    assert (attempt.report.ending, looks) == (Ending.CANCELLED, [])


def test_a_success_that_comes_too_late_leaves_no_payload_of_its_follow_ups(clock: Clock) -> None:
    store, payloads = OneJob(a_job()), Dropped()
    attempt = attempt_at(store, a_job_type(), clock, payloads=payloads)
    assert attempt.claim(remaining=SECOND)
    attempt.expire()
    report = attempt.report

    attempt.finish(Succeeded(follow_ups=(a_job(id="next", payload_at="item/1"),)))

    assert payloads.deleted == ["next"]
    assert (attempt.report, store.job.state) == (report, State.RETRYING)
