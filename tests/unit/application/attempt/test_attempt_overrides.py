"""Type overrides in an attempt: each run keeps those of its claim."""

from datetime import timedelta
from typing import Any

from tests.support.builders import NOW, SECOND, a_job, a_job_type, stored, types_of
from tests.support.configurations import configured, overridden
from tests.support.single_job import INVOCATION, Clock, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType
from tidemill.application.ports import LimitSlot
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.records import replace
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.in_memory.single_job import Unlimited


class _Configuration:
    """Handlers change it."""

    def __init__(self, present: RuntimeConfiguration) -> None:
        self.present = present

    def __call__(self) -> RuntimeConfiguration:
        return self.present


class _Limits(Unlimited):
    def __init__(self) -> None:
        self.asked: list[LimitSlot] = []

    def acquire(self, slot: LimitSlot, *, now: Any) -> Any:
        self.asked.append(slot)
        return super().acquire(slot, now=now)


def carry(
    store: DynamoJobStore,
    job: Job,
    configuration: _Configuration,
    job_type: JobType,
    limits: Unlimited | None = None,
) -> Report:
    store.insert_if_absent(job)
    context = tools(store, types_of(job_type), Clock())
    context = replace(context, configuration=configuration, limits=limits or Unlimited())
    return carried_out(Attempt(reference_to(job), context, deadline=NOW + INVOCATION))


def _fails(_payload: Any, _run: Run) -> None:
    raise ValueError("a failure")


def test_a_job_has_as_many_attempts_as_the_override_says(store: DynamoJobStore) -> None:
    seen: list[int] = []

    def handler(_payload: Any, run: Run) -> None:
        seen.append(run.max_attempts)
        raise ValueError("a failure")

    configuration = _Configuration(configured(overridden("test.job.max_attempts", 1)))

    report = carry(store, a_job(), configuration, a_job_type(handler, max_attempts=3))

    assert (report.ending, report.death, seen) == (Ending.DEAD, DeathReason.EXHAUSTED, [1])


def test_a_job_that_has_failed_more_often_than_the_override_allows_dies_without_a_run(store: DynamoJobStore) -> None:
    runs: list[int] = []
    configuration = _Configuration(configured(overridden("test.job.max_attempts", 2)))
    job = a_job(attempt=5)

    report = carry(store, job, configuration, a_job_type(lambda _payload, _run: runs.append(1)))

    kept = stored(store, job)
    assert (report.ending, kept.death, runs) == (Ending.DEAD, DeathReason.EXHAUSTED, [])
    assert kept.errors[-1].error_class == "NoAttemptLeft"


def test_a_run_keeps_the_overrides_of_its_claim(store: DynamoJobStore) -> None:
    configuration = _Configuration(NOTHING_SET)

    def handler(_payload: Any, _run: Run) -> None:
        configuration.present = configured(overridden("test.job.max_attempts", 1))
        raise ValueError("a failure")

    report = carry(store, a_job(), configuration, a_job_type(handler, max_attempts=3))

    assert report.ending is Ending.RETRYING


def test_the_backoff_is_that_of_the_override(store: DynamoJobStore) -> None:
    configuration = _Configuration(configured(overridden("test.job.backoff_cap_seconds", 0)))
    job = a_job()

    carry(store, job, configuration, a_job_type(_fails, backoff_seconds=600, backoff_cap_seconds=800))

    assert stored(store, job).due == NOW


def test_a_run_ends_when_the_override_says_and_never_after_its_lane(store: DynamoJobStore) -> None:
    deadlines: list[timedelta] = []
    job_type = replace(a_job_type(lambda _payload, run: deadlines.append(run.deadline - NOW)), timeout=4 * SECOND)

    for seconds in (3, 5, 900):
        configuration = _Configuration(configured(overridden("test.job.timeout_seconds", seconds)))
        carry(store, a_job(id=f"job-{seconds}"), configuration, job_type)

    assert deadlines == [3 * SECOND, 5 * SECOND, INVOCATION]


def test_a_slot_has_the_limit_of_the_override_and_the_declared_one(store: DynamoJobStore) -> None:
    declared, limits = Limit(concurrency=5), _Limits()
    configuration = _Configuration(configured(overridden("test.job.concurrency_per_key", 2)))

    carry(store, a_job(), configuration, replace(a_job_type(), limit=declared), limits)
    carry(store, a_job(id="unlimited"), configuration, a_job_type(), limits)

    assert [(slot.limit, slot.declared) for slot in limits.asked] == [
        (Limit(concurrency=2), declared),
        (Limit(concurrency=2), None),
    ]
