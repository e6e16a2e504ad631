"""How a claim ends if the job is not to run here: what the store is asked, and what is observed and reported."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import INVOCATION, NOW, SECOND, a_job, a_job_type, letter_for, types_of, with_changes
from tests.support.one_job import attempt_at
from tests.support.single_job import Clock, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_context import AttemptHooks
from tidemill.application.attempt.attempt_report import Ending, Report, Unobserved
from tidemill.domain.dispatch.claim_verdict import AHEAD_DELAY, ClaimVerdict
from tidemill.domain.dispatch.job_message import DeadLetter, Reference
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.in_memory.single_job import OneJob

JOB = a_job(id="j", tenant="t")
LEASE_END = NOW + INVOCATION + 2 * SECOND


class Store(OneJob):
    """It notes each claim, unclaim and redrive, and refuses them as the test says."""

    def __init__(self, job: Job = JOB, *, claim: Exception | None = None, undo: Exception | None = None) -> None:
        super().__init__(job)
        self.claim_error = claim
        self.undo_error = undo
        self.calls: list[tuple[Any, ...]] = []

    def claim(self, reference: Reference, *, token: str, now: datetime, lease_end: datetime, worker: str = "") -> Job:
        self.calls.append(("claim", reference.job_id, token, now, lease_end, worker))
        if self.claim_error:
            raise self.claim_error
        return super().claim(reference, token=token, now=now, lease_end=lease_end, worker=worker)

    def unclaim(self, reference: Reference, *, token: str, now: datetime) -> None:  # type: ignore[override]  # returns
        self.calls.append(("unclaim", reference.job_id, token, now))
        if self.undo_error:
            raise self.undo_error

    def redrive(self, job: Job, **how: Any) -> Job:  # type: ignore[override]  # this one returns
        self.calls.append(("redrive", job.id, how))
        if self.undo_error:
            raise self.undo_error
        return replace(job, state=State.QUEUED)


class Observer(Unobserved):
    """Notes what it gets."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def claimed(self, job: Job) -> None:
        self.seen.append(("claimed", job.id))

    def ended(self, reference: Reference | None, report: Report) -> None:
        self.seen.append(("ended", reference and reference.job_id, report))


def claim_of(store: Store, clock: Clock, **changes: Any) -> Attempt:
    return attempt_at(store, a_job_type(), clock, new_token=lambda: "mine", worker="w", **changes)


CLAIM = ("claim", "j", "mine", NOW, LEASE_END, "w")
UNCLAIM = ("unclaim", "j", "mine", NOW)


def test_a_claim_takes_the_job_until_the_invocation_has_ended(clock: Clock) -> None:
    store, observer = Store(), Observer()
    attempt = claim_of(store, clock, observer=observer)

    assert attempt.claim(remaining=INVOCATION)

    assert store.calls == [CLAIM]
    assert observer.seen == [("claimed", "j")]
    assert (attempt.report, attempt.has_ended(), attempt.is_stray()) == (None, False, False)


class Foreground:
    """Stands for the `Governor`."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def claimed(self, job: Job) -> None:
        self.jobs.append(job)


def test_the_foreground_hears_of_each_claim(clock: Clock) -> None:
    store, foreground = Store(), Foreground()
    assert claim_of(store, clock, foreground=foreground).claim(remaining=INVOCATION)
    assert foreground.jobs == [store.job]


@pytest.mark.parametrize("error", [StoreUnavailableError("down"), TransactionConflictError("busy")])
@pytest.mark.parametrize(
    "undo", [None, StoreUnavailableError("still down"), TransactionConflictError("busy"), WriteRefusedError("u", None)]
)
def test_a_claim_that_may_have_been_applied_is_taken_back(
    clock: Clock, error: Exception, undo: Exception | None
) -> None:
    """Or it would use up an attempt, and hold a lease without a run."""
    store, observer = Store(claim=error, undo=undo), Observer()
    attempt = claim_of(store, clock, observer=observer)

    with pytest.raises(type(error)) as raised:
        attempt.claim(remaining=INVOCATION)

    assert raised.value is error
    assert store.calls == [CLAIM, UNCLAIM]
    assert (observer.seen, attempt.report) == ([], None)


@pytest.mark.parametrize(
    ("current", "verdict", "until"),
    [
        (None, ClaimVerdict.GONE, None),
        (replace(JOB, state=State.SUCCEEDED), ClaimVerdict.DUPLICATE, None),
        (replace(JOB, generation=2), ClaimVerdict.STALE, None),
        (replace(JOB, generation=0), ClaimVerdict.AHEAD, NOW + AHEAD_DELAY),
        (replace(JOB, due=NOW + SECOND), ClaimVerdict.EARLY, NOW + SECOND),
        (with_changes(JOB, state=State.RUNNING, owner="another", due=NOW + SECOND), ClaimVerdict.LEASED, NOW + SECOND),
        (replace(JOB, state=State.DEAD), ClaimVerdict.DUPLICATE, None),
    ],
)
def test_a_refused_claim_says_why_and_when_the_message_comes_again(
    clock: Clock, current: Job | None, verdict: ClaimVerdict, until: datetime | None
) -> None:
    store, observer = Store(claim=WriteRefusedError("claim", current)), Observer()
    attempt = claim_of(store, clock, observer=observer)

    assert not attempt.claim(remaining=INVOCATION)

    report = Report(ending=Ending.REFUSED, job=current, verdict=verdict, put_back_until=until)
    assert attempt.report == report
    assert (store.calls, observer.seen) == ([CLAIM], [("ended", "j", report)])
    assert not attempt.is_stray()


def attempt_of_dead_job(store: Store, message: DeadLetter, observer: Observer) -> Attempt:
    context = replace(
        tools(store, types_of(a_job_type()), Clock()),  # type: ignore[arg-type]  # it needs less
        new_token=lambda: "mine",
    )
    hooks = AttemptHooks(observer=observer, worker="w")
    return Attempt(message, context, deadline=NOW + INVOCATION, hooks=hooks)


DEAD = replace(JOB, state=State.DEAD)
REDRIVE = ("redrive", "j", {"token": "mine", "now": NOW, "by": "queue redrive"})


@pytest.mark.parametrize(
    ("undo", "report"),
    [
        (None, Report(ending=Ending.REDRIVEN, job=replace(DEAD, state=State.QUEUED))),
        (WriteRefusedError("redrive", JOB), Report(ending=Ending.REFUSED, job=JOB, verdict=ClaimVerdict.STALE)),
        (WriteRefusedError("redrive", None), Report(ending=Ending.REFUSED, job=None, verdict=ClaimVerdict.STALE)),
    ],
)
def test_a_message_that_an_operator_moved_back_from_the_dlq_redrives_its_dead_job(
    undo: Exception | None, report: Report
) -> None:
    store, observer = Store(DEAD, claim=WriteRefusedError("claim", DEAD), undo=undo), Observer()
    attempt = attempt_of_dead_job(store, letter_for(DEAD), observer)

    assert not attempt.claim(remaining=INVOCATION)

    assert (store.calls, attempt.report) == ([CLAIM, REDRIVE], report)
    assert observer.seen == [("ended", "j", report)]


@pytest.mark.parametrize(
    ("current", "verdict"),
    [
        (None, ClaimVerdict.GONE),
        # It was redriven since, and may run.
        (replace(JOB, generation=2), ClaimVerdict.STALE),
        (replace(JOB, state=State.SUCCEEDED), ClaimVerdict.DUPLICATE),
        (with_changes(DEAD, expires_at=NOW), ClaimVerdict.DUPLICATE),
    ],
)
def test_a_message_from_the_dlq_redrives_nothing_but_a_dead_job(current: Job | None, verdict: ClaimVerdict) -> None:
    store = Store(DEAD, claim=WriteRefusedError("claim", current))
    attempt = attempt_of_dead_job(store, letter_for(DEAD), Observer())

    assert not attempt.claim(remaining=INVOCATION)

    assert store.calls == [CLAIM]
    assert attempt.report == Report(ending=Ending.REFUSED, job=current, verdict=verdict)


def test_an_attempt_that_has_ended_claims_nothing(clock: Clock) -> None:
    store, observer = Store(), Observer()
    attempt = claim_of(store, clock, observer=observer)
    attempt.expire()
    report = Report(ending=Ending.NOT_STARTED, put_back_until=NOW)
    assert attempt.report == report

    assert not attempt.claim(remaining=INVOCATION)

    assert (store.calls, observer.seen, attempt.report) == ([], [("ended", "j", report)], report)


@pytest.mark.parametrize("undo", [None, WriteRefusedError("unclaim", None)])
def test_a_claim_during_which_the_time_ran_out_is_given_back(clock: Clock, undo: Exception | None) -> None:
    class Slow(Store):
        def claim(self, reference: Reference, **how: Any) -> Job:  # type: ignore[override]  # the same
            attempt.expire()
            return super().claim(reference, **how)

    store, observer = Slow(undo=undo), Observer()
    attempt = claim_of(store, clock, observer=observer)

    assert not attempt.claim(remaining=INVOCATION)

    assert store.calls == [CLAIM, UNCLAIM]
    not_started = Report(ending=Ending.NOT_STARTED, put_back_until=NOW)
    released = [] if undo else [("ended", "j", Report(ending=Ending.RELEASED, job=store.job))]
    assert observer.seen == [("ended", "j", not_started), ("claimed", "j"), *released]
    assert attempt.report == not_started


@pytest.mark.parametrize(
    ("error", "cause"),
    [(StoreUnavailableError("down"), False), (WriteRefusedError("c", None), False), (KeyError("k"), True)],
)
@pytest.mark.parametrize("claimed", [True, False])
def test_a_message_without_an_answer_comes_back_when_the_lease_of_its_claim_ends(
    clock: Clock, error: Exception, cause: bool, claimed: bool
) -> None:
    """Before a claim it has no lease. Only an error that no dependency causes is shown with its traceback.

    Its time is drawn once: what comes after the end draws nothing.
    """
    store, observer, draws = Store(), Observer(), iter([0.5])
    attempt = claim_of(store, clock, observer=observer, draw=lambda: next(draws))
    if claimed:
        attempt.claim(remaining=INVOCATION)

    attempt.unavailable(error)
    attempt.unavailable(ZeroDivisionError("later"))
    attempt.expire()

    report = Report(
        ending=Ending.UNAVAILABLE,
        job=store.job if claimed else None,
        error=str(error),
        cause=error if cause else None,
        put_back_until=LEASE_END if claimed else NOW + 2 * SECOND,
    )
    assert attempt.report == report
    assert [call for call in observer.seen if call[0] == "ended"] == [("ended", "j", report)]


def test_nothing_is_settled_before_a_claim(clock: Clock) -> None:
    store = Store(claim=WriteRefusedError("claim", None))
    attempt = claim_of(store, clock)
    with pytest.raises(AssertionError, match="an attempt runs only after its claim"):
        attempt.run()
    assert carried_out(attempt).verdict is ClaimVerdict.GONE


@pytest.mark.parametrize("after", [timedelta(0), SECOND])
def test_a_lease_begins_with_its_claim(clock: Clock, after: timedelta) -> None:
    store = Store()
    clock.now += after
    claim_of(store, clock).claim(remaining=3 * SECOND)
    assert store.calls == [("claim", "j", "mine", NOW + after, NOW + after + 5 * SECOND, "w")]
