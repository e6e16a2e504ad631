"""Runs that wait through no fault of their own: their limit is full, or the store does not respond."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import (
    NOW,
    SECOND,
    a_job,
    a_job_type,
    an_error,
    reference_to,
    stored,
    types_of,
)
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.single_job import INVOCATION, Clock, Inline, carried_out, tools
from tests.unit.conftest import Carry
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_context import AttemptContext, AttemptHooks
from tidemill.application.attempt.attempt_holds import MOST_HOLDS_OF_AN_OUTAGE
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.job_view import view
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Line, Wait
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.in_memory.single_job import Unlimited

Handler = Callable[[Any, Run], Any]


def _type(handler: Handler, **changes: Any) -> JobType:
    return replace(a_job_type(handler), **changes)


class _Full(Unlimited):
    def __init__(self, until: Any) -> None:
        self.until = until
        self.calls: list[tuple[str, LimitSlot]] = []

    def acquire(self, slot: LimitSlot, *, now: Any) -> Any:
        self.calls.append(("acquire", slot))
        if isinstance(self.until, Exception):
            raise self.until
        return self.until

    def release(self, slot: LimitSlot, change: Any = None) -> bool:
        self.calls.append(("release", slot))
        return False


def _with_limits(store: DynamoJobStore, job_type: JobType, clock: Clock, limits: _Full) -> AttemptContext:
    return replace(tools(store, types_of(job_type), clock), limits=limits)


LIMITED = Limit(concurrency=1)


def test_a_job_whose_limit_is_full_is_parked_and_uses_up_neither_attempt_nor_hop(
    store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    line = Line.for_limit('["test.job", "", "111122223333:AROAEXAMPLE"]')
    full = _Full(line)

    attempt = Attempt(
        reference_to(queued),
        _with_limits(store, _type(lambda _payload, _run: None, limit=LIMITED), clock, full),
        deadline=NOW + INVOCATION,
    )
    report = carried_out(attempt)

    job = stored(store, queued)
    assert (report.ending, job.state, job.attempt, job.hops, job.holds.count) == (Ending.PARKED, State.PARKED, 0, 0, 1)
    assert job.wait == Wait(cause=Cause.LIMIT, key=line.key, since=NOW)
    assert job.due == NOW + LONGEST_PARKED
    assert store.parked(line, most=2) == [job]


def test_a_job_whose_rate_gives_it_a_time_waits_and_uses_up_neither_attempt_nor_hop(
    store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    runs: list[int] = []
    full = _Full(NOW + 7 * SECOND)
    limited = _type(lambda _payload, _run: runs.append(1), limit=LIMITED, limit_key=lambda _payload: "acme")

    report = carried_out(
        Attempt(reference_to(queued), _with_limits(store, limited, clock, full), deadline=NOW + INVOCATION)
    )

    job = stored(store, queued)
    assert (report.ending, runs) == (Ending.HELD, [])
    assert (job.state, job.due, job.attempt, job.hops, job.holds.count) == (State.QUEUED, NOW + 7 * SECOND, 0, 0, 1)
    assert [(call, slot.line.key) for call, slot in full.calls] == [
        ("acquire", '["test.job", "acme", "111122223333:AROAEXAMPLE"]')
    ]


@pytest.mark.parametrize("error", [None, ValueError("no")], ids=["success", "failure"])
def test_a_slot_is_released_after_success_and_failure(
    store: DynamoJobStore, clock: Clock, queued: Job, error: Exception | None
) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        if error:
            raise error

    free = _Full(Entered())
    attempt = Attempt(
        reference_to(queued),
        _with_limits(store, _type(handler, limit=LIMITED), clock, free),
        deadline=NOW + INVOCATION,
    )
    carried_out(attempt)

    assert [call for call, _ in free.calls] == ["acquire", "release"]
    assert len({slot for _, slot in free.calls}) == 1


def test_limits_that_cannot_be_read_cost_no_attempt(store: DynamoJobStore, clock: Clock, queued: Job) -> None:
    out = _Full(StoreUnavailableError("busy"))
    limited = _type(lambda _payload, _run: None, limit=LIMITED)

    report = carried_out(
        Attempt(reference_to(queued), _with_limits(store, limited, clock, out), deadline=NOW + INVOCATION)
    )

    assert (report.ending, stored(store, queued).attempt) == (Ending.HELD, 0)


def test_a_payload_that_cannot_be_read_costs_no_attempt_and_one_that_is_gone_does(
    store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    class Lost(Inline):
        error: Exception = StoreUnavailableError("busy")

        def load(self, job: Job) -> str:
            raise self.error

    lost = Lost()
    shared_tools = replace(tools(store, types_of(a_job_type()), clock), payloads=lost)

    held = carried_out(Attempt(reference_to(queued), shared_tools, deadline=NOW + INVOCATION))
    lost.error = MalformedDocumentError("gone")
    clock.now += timedelta(minutes=2)
    failed = carried_out(Attempt(reference_to(stored(store, queued)), shared_tools, deadline=clock.now + INVOCATION))

    assert (held.ending, failed.ending) == (Ending.HELD, Ending.RETRYING)
    assert stored(store, queued).attempt == 1


def test_a_limit_may_span_tenants(store: DynamoJobStore, clock: Clock, queued: Job) -> None:
    full = _Full(Entered())
    shared = _type(lambda _payload, _run: None, limit=LIMITED, limit_spans_tenants=True)

    carried_out(Attempt(reference_to(queued), _with_limits(store, shared, clock, full), deadline=NOW + INVOCATION))

    assert {slot.line.key for _, slot in full.calls} == {json.dumps(["test.job", ""])}


def test_a_store_that_does_not_answer_a_handler_costs_no_attempt_while_it_may_be_an_outage(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        raise StoreUnavailableError("busy")

    endings = []
    for _ in range(MOST_HOLDS_OF_AN_OUTAGE + 1):
        endings.append(carry(stored(store, queued), a_job_type(handler)).ending)
        clock.now += timedelta(minutes=16)

    assert endings == [Ending.HELD] * MOST_HOLDS_OF_AN_OUTAGE + [Ending.RETRYING]
    assert stored(store, queued).attempt == 1


def test_a_limit_that_is_full_now_and_then_gives_an_outage_no_further_patience(
    store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        raise StoreUnavailableError("busy")

    limits, endings = _Full(Entered()), []
    context = _with_limits(store, _type(handler, limit=LIMITED), clock, limits)
    for number in range(2 * MOST_HOLDS_OF_AN_OUTAGE + 2):
        limits.until = Entered() if number % 2 else clock.now + SECOND
        attempt = Attempt(reference_to(stored(store, queued)), context, deadline=clock.now + INVOCATION)
        endings.append(carried_out(attempt).ending)
        clock.now += timedelta(minutes=16)

    assert endings == [Ending.HELD] * (2 * MOST_HOLDS_OF_AN_OUTAGE + 1) + [Ending.RETRYING]
    assert stored(store, queued).held_by_cause == {}


def _unknown(store: DynamoJobStore, clock: Clock) -> AttemptContext:
    return tools(store, JobTypes({}), clock)


def _unreachable(store: DynamoJobStore, clock: Clock) -> AttemptContext:
    def handler(_payload: Any, _run: Run) -> None:
        raise StoreUnavailableError("busy")

    return tools(store, types_of(a_job_type(handler, max_attempts=1)), clock)


def _busy(store: DynamoJobStore, clock: Clock) -> AttemptContext:
    return tools(store, types_of(a_job_type(lambda _payload, _run: None)), clock)


@pytest.mark.parametrize(
    ("context", "crashes", "cause"),
    [(_unknown, 0, HoldCause.VERSION), (_unreachable, 0, HoldCause.OUTAGE), (_busy, 1, HoldCause.SUSPECT)],
    ids=["other version", "outage", "suspect"],
)
def test_holds_by_a_limit_use_up_no_other_protection(
    store: DynamoJobStore, clock: Clock, *, context: Any, crashes: int, cause: HoldCause
) -> None:
    limited = a_job(attempt=crashes, open_runs=crashes, holds=20, hold_cause=HoldCause.LIMIT)
    attempt = Attempt(
        reference_to(store.insert_if_absent(limited)),
        context(store, clock),
        deadline=NOW + INVOCATION,
        hooks=AttemptHooks(wait_until_alone=lambda _deadline: None),
    )

    report = carried_out(attempt)

    held = stored(store, limited)
    assert (report.ending, held.attempt, held.holds.count, held.holds.cause) == (Ending.HELD, crashes, 1, cause)


def test_a_claim_whose_answer_was_lost_is_given_back(
    carry: Carry, store: DynamoJobStore, client: FaultyClient, queued: Job
) -> None:
    client.faults = [Fault.ANSWER_LOST]

    report = carry(queued)

    job = stored(store, queued)
    assert report.ending is Ending.UNAVAILABLE
    assert (job.state, job.attempt, job.lease.owner, job.generation) == (State.RETRYING, 0, None, 2)


def test_a_claim_that_was_never_made_is_not_given_back(
    carry: Carry, store: DynamoJobStore, client: FaultyClient, queued: Job
) -> None:
    client.faults = [Fault.NOT_SENT]

    carry(queued)

    assert stored(store, queued) == queued


def test_a_run_whose_time_was_up_while_its_payload_was_read_does_not_begin(
    store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    runs: list[int] = []

    class Slow(Inline):
        def load(self, job: Job) -> str:
            attempt.expire()
            return super().load(job)

    slow = replace(tools(store, types_of(a_job_type(lambda _payload, _run: runs.append(1))), clock), payloads=Slow())
    attempt = Attempt(reference_to(queued), slow, deadline=NOW + INVOCATION)

    assert (carried_out(attempt).ending, runs) == (Ending.RETRYING, [])


def test_runs_that_reported_no_result_are_known_from_the_next_claim_on() -> None:
    running = a_job(state=State.RUNNING, attempt=4, open_runs=3, errors=(an_error(attempt=1),), claimed_at=NOW + SECOND)

    assert [(error.attempt, error.at) for error in running.lost] == [(2, NOW + SECOND), (3, NOW + SECOND)]
    assert [error["attempt"] for error in view(running, payload=None)["errors"]] == [1, 2, 3]
    # At rest, the last of the three has ended without a result too.
    assert [error.attempt for error in replace(running, state=State.RETRYING).lost] == [2, 3, 4]
