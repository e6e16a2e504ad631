"""Attempts that run out of time or get no answer, and dead-letter messages that come back to the lane."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    a_job_type,
    brought_to,
    letter_for,
    reference_to,
    stored,
    types_of,
)
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.single_job import INVOCATION, Clock, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.attempt.run import Run
from tidemill.application.attempt.settle import SETTLE_TRIES
from tidemill.domain.attempt.outcomes import Succeeded
from tidemill.domain.dispatch.claim_verdict import ClaimVerdict
from tidemill.domain.dispatch.job_message import DeadLetter, Reference
from tidemill.domain.errors import JobTimeoutError, StoreUnavailableError, TransactionConflictError, WriteRefusedError
from tidemill.domain.history import Why
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.powertools.idempotency import run_once

Take = Callable[..., Attempt]


@pytest.fixture
def attempt_at(store: DynamoJobStore, clock: Clock) -> Take:
    def attempt_at(
        body: Reference | DeadLetter, handler: Callable[[Any, Run], Any] = lambda _payload, _run: None
    ) -> Attempt:
        return Attempt(body, tools(store, types_of(a_job_type(handler)), clock), deadline=NOW + INVOCATION)

    return attempt_at


def test_an_attempt_that_expires_before_its_claim_is_put_back_at_once(
    attempt_at: Take, store: DynamoJobStore, queued: Job
) -> None:
    attempt = attempt_at(reference_to(queued))

    attempt.expire()

    assert attempt.report == Report(ending=Ending.NOT_STARTED, put_back_until=NOW)
    run_once(attempt, remaining=INVOCATION)
    assert stored(store, queued) == queued


def test_an_attempt_that_expires_while_it_runs_fails_and_what_it_returns_later_is_lost(
    attempt_at: Take, store: DynamoJobStore, queued: Job
) -> None:
    def handler(_payload: Any, _run: Run) -> str:
        attempt.expire()
        return "too late"

    attempt = attempt_at(reference_to(queued), handler)

    assert carried_out(attempt).ending is Ending.RETRYING
    late = stored(store, queued)
    assert (late.state, late.result, late.errors[0].error_class) == (State.RETRYING, None, "JobTimeoutError")


def test_an_attempt_that_expires_while_its_claim_is_on_its_way_gives_the_job_back(
    attempt_at: Take, store: DynamoJobStore, queued: Job
) -> None:
    attempt = attempt_at(reference_to(queued))
    claim = store.claim

    def slow_claim(*arguments: Any, **keywords: Any) -> Job:
        attempt.expire()
        return claim(*arguments, **keywords)

    store.claim = slow_claim  # type: ignore[method-assign]

    assert not attempt.claim(remaining=INVOCATION), "there is nothing to run"
    assert attempt.report == Report(ending=Ending.NOT_STARTED, put_back_until=NOW)
    given_back = stored(store, queued)
    assert (given_back.state, given_back.attempt, given_back.due) == (State.RETRYING, 0, NOW)
    assert given_back.lease.releases == 0, (
        "no transaction conflicted with it, and a debounced job still takes submissions"
    )
    assert given_back.history[-1].cause == Why.UNANSWERED


def test_an_attempt_that_expires_between_claim_and_run_does_not_run(attempt_at: Take, queued: Job) -> None:
    runs: list[Any] = []
    attempt = attempt_at(reference_to(queued), lambda _payload, _run: runs.append(1))

    assert attempt.claim(remaining=INVOCATION)
    attempt.expire()

    with pytest.raises(JobTimeoutError):
        attempt.run()
    assert runs == []


def test_an_attempt_that_has_ended_does_not_expire(attempt_at: Take, queued: Job) -> None:
    attempt = attempt_at(reference_to(queued))
    report = carried_out(attempt)

    attempt.expire()
    attempt.unavailable(ValueError())

    assert attempt.report is report
    refused = attempt_at(reference_to(queued))
    assert carried_out(refused).verdict is ClaimVerdict.DUPLICATE
    refused.expire()
    assert refused.report is not None
    assert refused.report.ending is Ending.REFUSED


def test_a_settle_that_ends_after_the_message_was_put_back_leaves_the_report_as_it_is(
    attempt_at: Take, store: DynamoJobStore, monkeypatch: pytest.MonkeyPatch, queued: Job
) -> None:
    attempt = attempt_at(reference_to(queued))
    settle = store.settle

    def slow_settle(*arguments: Any, **keywords: Any) -> None:
        settle(*arguments, **keywords)
        # The invocation has no time left, and does not wait for the answer.
        attempt.unavailable(JobTimeoutError("no time left"))

    monkeypatch.setattr(store, "settle", slow_settle)

    report = carried_out(attempt)

    assert stored(store, queued).state is State.SUCCEEDED
    assert report.job is not None
    assert (report.ending, report.put_back_until) == (Ending.UNAVAILABLE, report.job.due)


def test_a_message_whose_job_is_settled_at_this_moment_is_not_put_back(
    store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    shared_tools = tools(store, types_of(a_job_type()), clock)
    unsettled = iter([True])

    def draw() -> float:
        # `unavailable` draws before it looks whether there is a report.
        if next(unsettled, False):
            attempt.finish(Succeeded())
        return 0.5

    attempt = Attempt(reference_to(queued), replace(shared_tools, draw=draw), deadline=NOW + INVOCATION)
    assert attempt.claim(remaining=INVOCATION)

    attempt.unavailable(JobTimeoutError("no time left"))

    assert attempt.report is not None
    assert (attempt.report.ending, attempt.report.put_back_until) == (Ending.SUCCEEDED, None)


def test_a_claim_that_is_refused_after_the_message_was_put_back_leaves_the_report_as_it_is(
    attempt_at: Take, store: DynamoJobStore, monkeypatch: pytest.MonkeyPatch, queued: Job
) -> None:
    attempt = attempt_at(reference_to(queued))

    def slow_claim(*_arguments: Any, **_keywords: Any) -> Job:
        attempt.expire()
        raise WriteRefusedError("claim", None)

    monkeypatch.setattr(store, "claim", slow_claim)

    assert carried_out(attempt).ending is Ending.NOT_STARTED


def test_an_attempt_cannot_be_finished_before_its_claim(attempt_at: Take, queued: Job) -> None:
    with pytest.raises(AssertionError, match="only after its claim"):
        attempt_at(reference_to(queued)).finish(Succeeded())


def test_a_claim_without_an_answer_puts_the_message_back_for_a_while(
    attempt_at: Take, client: FaultyClient, queued: Job
) -> None:
    client.faults = [Fault.NOT_SENT]

    report = carried_out(attempt_at(reference_to(queued)))

    assert (report.ending, report.job, report.put_back_until) == (Ending.UNAVAILABLE, None, NOW + 2 * SECOND)
    assert report.error


@pytest.mark.parametrize("backoff", [(1, 2), (2, 2.25), (60, 451)])
def test_the_more_often_a_message_was_received_the_longer_it_is_put_back(
    store: DynamoJobStore, client: FaultyClient, clock: Clock, queued: Job, backoff: tuple[int, float]
) -> None:
    receives, seconds = backoff
    client.faults = [Fault.NOT_SENT]
    of = tools(store, types_of(a_job_type()), clock)

    report = carried_out(Attempt(reference_to(queued), of, deadline=NOW + LEASE, receives=receives))

    assert report.put_back_until == NOW + seconds * SECOND


def test_a_settle_that_never_arrives_leaves_the_message_until_the_lease_is_over(
    attempt_at: Take, client: FaultyClient, queued: Job
) -> None:
    client.faults = [None, *[Fault.NOT_SENT] * SETTLE_TRIES]

    report = carried_out(attempt_at(reference_to(queued)))

    assert report.job is not None
    assert (report.ending, report.put_back_until) == (Ending.UNAVAILABLE, report.job.due)


@pytest.mark.parametrize("faults", [[Fault.ANSWER_LOST], [Fault.NOT_SENT] * (SETTLE_TRIES - 1)])
def test_a_settle_is_tried_again_in_place_when_the_store_does_not_answer(
    attempt_at: Take, client: FaultyClient, queued: Job, faults: list[Fault]
) -> None:
    client.faults = [None, *faults]

    assert carried_out(attempt_at(reference_to(queued))).ending is Ending.SUCCEEDED


def test_a_failure_that_cannot_be_settled_leaves_the_message_until_the_lease_is_over(
    attempt_at: Take, client: FaultyClient, store: DynamoJobStore, queued: Job
) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        raise ValueError("no")

    client.faults = [None, *[Fault.NOT_SENT] * SETTLE_TRIES]

    assert carried_out(attempt_at(reference_to(queued), handler)).ending is Ending.UNAVAILABLE
    assert stored(store, queued).state is State.RUNNING


def test_a_dead_letter_message_that_comes_back_to_the_lane_redrives_its_job(
    attempt_at: Take, store: DynamoJobStore, clock: Clock
) -> None:
    dead = brought_to(store, State.DEAD)
    clock.now += SECOND

    report = carried_out(attempt_at(letter_for(dead)))

    queued = stored(store, dead)
    assert report == Report(ending=Ending.REDRIVEN, job=queued)
    assert (queued.state, queued.generation, queued.redrives[0].by) == (State.QUEUED, 2, "queue redrive")


def test_a_dead_letter_message_whose_job_is_redriven_at_this_moment_is_acknowledged(
    attempt_at: Take, store: DynamoJobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = brought_to(store, State.DEAD)
    redrive = store.redrive

    def slow_redrive(job: Job, **keywords: Any) -> Job:
        redrive(job, token="faster", now=NOW, by="ada")
        return redrive(job, **keywords)

    monkeypatch.setattr(store, "redrive", slow_redrive)

    report = carried_out(attempt_at(letter_for(dead)))

    assert (report.ending, report.verdict, report.put_back_until) == (Ending.REFUSED, ClaimVerdict.STALE, None)
    assert [entry.by for entry in stored(store, dead).redrives] == ["ada"]


def test_a_dead_letter_message_from_before_a_redrive_is_acknowledged(attempt_at: Take, store: DynamoJobStore) -> None:
    dead = brought_to(store, State.DEAD)
    queued = store.redrive(dead, token="a redrive", now=NOW, by="ada")

    report = carried_out(attempt_at(letter_for(dead)))

    assert (report.verdict, report.put_back_until) == (ClaimVerdict.STALE, None)
    assert stored(store, dead) == queued


def test_a_dead_letter_message_of_an_expired_job_redrives_nothing(
    attempt_at: Take, store: DynamoJobStore, clock: Clock
) -> None:
    dead = brought_to(store, State.DEAD)
    clock.now += RETENTION + SECOND

    assert carried_out(attempt_at(letter_for(dead))).verdict is ClaimVerdict.DUPLICATE
    assert stored(store, dead) == dead


@pytest.mark.parametrize("error", [TransactionConflictError(), WriteRefusedError("claim", None)])
def test_a_claim_that_fails_never_runs_the_handler(
    attempt_at: Take, store: DynamoJobStore, monkeypatch: pytest.MonkeyPatch, queued: Job, error: Exception
) -> None:
    runs: list[Any] = []

    def claim(*_arguments: Any, **_keywords: Any) -> Job:
        raise error

    monkeypatch.setattr(store, "claim", claim)

    carried_out(attempt_at(reference_to(queued), lambda _payload, _run: runs.append(1)))

    assert runs == []


@pytest.mark.parametrize("ending", [Ending.UNAVAILABLE, Ending.RETRYING])
def test_no_handler_begins_once_another_thread_has_ended_the_attempt(
    store: DynamoJobStore, clock: Clock, queued: Job, ending: Ending
) -> None:
    called = []

    def slow_parse(payload: Any) -> Any:
        """The other thread ends the attempt meanwhile."""
        if ending is Ending.UNAVAILABLE:
            attempt.unavailable(StoreUnavailableError("throttled"))
        else:
            attempt.expire()
        return payload

    job_type = a_job_type(lambda _payload, _run: called.append("called"), parse=slow_parse)
    attempt = Attempt(reference_to(queued), tools(store, types_of(job_type), clock), deadline=NOW + INVOCATION)

    assert carried_out(attempt).ending is ending
    assert called == []
