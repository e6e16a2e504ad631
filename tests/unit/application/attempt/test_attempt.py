"""Each way in which an attempt can end."""

import asyncio
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    SECOND,
    TENANT,
    a_job,
    a_job_type,
    claimed,
    stored,
)
from tests.support.single_job import INVOCATION, Clock
from tests.unit.conftest import Carry
from tidemill.application.attempt.attempt import CLOCK_SKEW_MARGIN
from tidemill.application.attempt.attempt_holds import MOST_HOLDS_OF_A_VERSION
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.attempt.handler_results import LARGEST_RESULT_BYTES
from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.attempt.return_values import Done
from tidemill.domain.errors import Fault, InvalidPayloadError, PermanentJobError
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore

OTHER_TYPE = a_job_type(name="test.other")


def _raising(error: BaseException) -> JobType:
    def handler(_payload: Any, _run: Run) -> None:
        raise error

    return a_job_type(handler, max_attempts=3)


def _returning(value: Any) -> JobType:
    return a_job_type(lambda _payload, _run: value)


def test_a_handler_is_given_its_payload_and_its_run(carry: Carry, store: DynamoJobStore) -> None:
    seen = []
    job = a_job(payload='{"n":[1,null]}')
    store.insert_if_absent(job)

    carry(job, a_job_type(lambda payload, run: seen.append((payload, run)), max_attempts=7))

    run = Run(
        job_id=job.id,
        tenant=TENANT,
        attempt=1,
        max_attempts=7,
        submitted_at=NOW,
        deadline=NOW + INVOCATION,
        idempotency_key=job.id,
    )
    assert seen == [({"n": [1, None]}, run)]


def test_the_lease_outlasts_the_invocation_by_the_margin_for_clocks(
    carry: Carry, store: DynamoJobStore, queued: Job
) -> None:
    leases = []

    carry(queued, a_job_type(lambda _payload, _run: leases.append(stored(store, queued).due)))

    assert leases == [NOW + INVOCATION + CLOCK_SKEW_MARGIN]


@pytest.mark.parametrize(
    ("value", "result"),
    [(None, None), ({"n": 1}, '{"n":1}'), (Done(result=[1, "ü"]), '[1,"\\u00fc"]'), (0, "0"), (Done(), None)],
)
def test_the_return_value_of_a_handler_is_the_result(
    carry: Carry, store: DynamoJobStore, queued: Job, value: Any, result: str | None
) -> None:
    report = carry(queued, _returning(value))

    assert (report.ending, report.put_back_until, report.error) == (Ending.SUCCEEDED, None, None)
    assert (stored(store, queued).state, stored(store, queued).result) == (State.SUCCEEDED, result)


def test_the_report_says_when_the_attempt_was_settled(carry: Carry, clock: Clock, queued: Job) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        clock.now += 3 * SECOND

    assert carry(queued, a_job_type(handler)).settled_at == NOW + 3 * SECOND


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({1, 2}, "a result must be JSON: Object of type set"),
        (float("nan"), "a result must be JSON: Out of range float"),
        ({(1, 2): 3}, "a result must be JSON: keys must be"),
        ("x" * (LARGEST_RESULT_BYTES - 1), f"the result is {LARGEST_RESULT_BYTES + 1} bytes"),
    ],
    ids=["no JSON", "not a number", "no key", "too large"],
)
def test_a_result_that_cannot_be_stored_kills_the_job_with_that_reason(
    carry: Carry, store: DynamoJobStore, queued: Job, value: Any, reason: str
) -> None:
    report = carry(queued, _returning(value))

    dead = stored(store, queued)
    assert (report.ending, dead.death, dead.result) == (Ending.DEAD, DeathReason.RESULT_UNSTORABLE, None)
    assert dead.errors[0].message.startswith(reason)


def test_a_result_that_contains_itself_kills_the_job(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    endless: list[Any] = []
    endless.append(endless)

    carry(queued, _returning(endless))

    assert stored(store, queued).death is DeathReason.RESULT_UNSTORABLE


def test_the_largest_result_is_stored(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    carry(queued, _returning("x" * (LARGEST_RESULT_BYTES - 2)))

    assert len(stored(store, queued).result or "") == LARGEST_RESULT_BYTES


def test_an_exception_is_a_failure_that_is_tried_again(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    report = carry(queued, _raising(ValueError("not today")))

    assert (report.ending, report.error, report.put_back_until) == (Ending.RETRYING, "ValueError: not today", None)
    retrying = stored(store, queued)
    assert (retrying.state, retrying.generation, retrying.due) == (State.RETRYING, 2, NOW + SECOND)
    assert [error.message for error in retrying.errors] == ["not today"]


def test_a_permanent_error_kills_the_job_at_once(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    report = carry(queued, _raising(PermanentJobError("never")))

    assert (report.ending, stored(store, queued).death) == (Ending.DEAD, DeathReason.PERMANENT)


def test_the_last_attempt_that_fails_kills_the_job(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    endings = []
    for _ in range(3):
        endings.append(carry(stored(store, queued), _raising(ValueError("no"))).ending)
        clock.now += 10 * SECOND

    assert endings == [Ending.RETRYING, Ending.RETRYING, Ending.DEAD]
    assert stored(store, queued).death is DeathReason.EXHAUSTED
    assert [error.attempt for error in stored(store, queued).errors] == [1, 2, 3]


@pytest.mark.parametrize("ended", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_a_handler_that_would_end_its_worker_ends_its_attempt(
    carry: Carry, store: DynamoJobStore, queued: Job, ended: BaseException
) -> None:
    report = carry(queued, _raising(ended))

    assert report.ending is Ending.RETRYING
    assert stored(store, queued).errors[0].message == f"the handler tried to end its process: {ended!r}"


def _unfit(_payload: Any) -> None:
    raise InvalidPayloadError([Fault("/payload/n", "is missing")])


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (OTHER_TYPE, f"UnknownJobTypeError: unknown job type 'test.job'; known types: {OTHER_TYPE.name}"),
        (a_job_type(parse=_unfit), "InvalidPayloadError: /payload/n: is missing"),
    ],
    ids=["unknown type", "other payload"],
)
def test_a_job_that_a_worker_of_another_version_cannot_run_is_held_and_keeps_its_attempts(
    carry: Carry, store: DynamoJobStore, clock: Clock, *, queued: Job, other: JobType, why: str
) -> None:
    for attempts_before in range(2):
        report = carry(stored(store, queued), other)
        held = stored(store, queued)
        assert (report.ending, report.error) == (Ending.HELD, why)
        assert (held.state, held.attempt, held.holds.count, held.errors) == (State.QUEUED, 0, attempts_before + 1, ())
        clock.now += 900 * SECOND

    carry(held, a_job_type())
    assert stored(store, queued).state is State.SUCCEEDED


def test_a_job_with_many_failures_is_held_by_a_worker_that_does_not_know_its_type(
    carry: Carry, store: DynamoJobStore, queued: Job
) -> None:
    job = replace(queued, id="tried often", attempt=RetryPolicy().max_attempts + 1)
    store.insert_if_absent(job)

    assert carry(job, OTHER_TYPE).ending is Ending.HELD


def test_a_type_that_no_worker_knows_is_held_for_longer_than_a_deployment_and_then_dies(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    endings = []
    while (job := stored(store, queued)).state is not State.DEAD:
        endings.append(carry(job, OTHER_TYPE).ending)
        clock.now += 900 * SECOND

    assert endings == [Ending.HELD] * MOST_HOLDS_OF_A_VERSION + [Ending.DEAD]
    assert (job.death, job.errors[-1].error_class) == (DeathReason.PERMANENT, "UnknownJobTypeError")


def test_a_job_whose_runs_reported_no_result_dies_without_another_run(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    runs: list[Any] = []
    for token in ("killed", "killed again"):
        claimed(store, queued, token=token, now=clock.now)
        clock.now += LEASE

    report = carry(queued, a_job_type(lambda _payload, _run: runs.append(1), max_attempts=2))

    assert (report.ending, stored(store, queued).death, runs) == (Ending.DEAD, DeathReason.CRASHED, [])
