"""A paused job whose message was sent before: one claim, no run, no attempt."""

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import A_WAIT, NOW, SECOND, a_job, a_job_type, types_of
from tests.support.configurations import configured, paused
from tests.support.single_job import INVOCATION, Clock, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.job_types import JobType
from tidemill.application.ports import LimitSlot
from tidemill.application.waiting.release import Releaser
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Line, Wait
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.in_memory.single_job import Unlimited

PAUSED = configured(paused("type=test.job"))
PAUSE_WAIT = Wait(cause=Cause.PAUSE, key="type=test.job", since=NOW)
LIMITED = Limit(concurrency=1)


class _Limits(Unlimited):
    def __init__(self) -> None:
        self.asked: list[Line] = []

        self.listed: list[tuple[Line, Rate]] = []

    def list_line(self, line: Line, rate: Rate, **_job_and_now: object) -> None:
        self.listed.append((line, rate))

    def acquire(self, slot: LimitSlot, *, now: datetime) -> Any:
        self.asked.append(slot.line)
        return super().acquire(slot, now=now)


def carry(
    store: DynamoJobStore,
    job: Job,
    configuration: RuntimeConfiguration,
    job_type: JobType | None = None,
    limits: Unlimited | None = None,
) -> Report:
    store.insert_if_absent(job)
    context = tools(store, types_of(job_type or a_job_type()), Clock())
    context = replace(context, configuration=lambda: configuration, limits=limits or Unlimited())
    return carried_out(Attempt(reference_to(job), context, deadline=NOW + INVOCATION))


def stored(store: DynamoJobStore, job: Job) -> Job:
    found = store.get(job.tenant, job.id)
    assert found is not None
    return found


def test_a_paused_job_is_parked_without_a_run_or_an_attempt(store: DynamoJobStore) -> None:
    runs: list[int] = []
    job = a_job(attempt=1)

    report = carry(store, job, PAUSED, a_job_type(lambda _payload, _run: runs.append(1)))

    kept = stored(store, job)
    assert (report.ending, runs, kept.state, kept.attempt, kept.hops) == (Ending.PARKED, [], State.PARKED, 1, 0)
    assert (kept.wait, kept.holds.cause, kept.due) == (PAUSE_WAIT, HoldCause.PAUSE, NOW + LONGEST_PARKED)
    assert kept.generation == job.generation + 1
    assert kept.history[-1].cause == "held: pause"
    assert store.parked(PAUSE_WAIT.line, most=2) == [kept]


def test_a_job_of_an_unknown_type_is_parked_too(store: DynamoJobStore) -> None:
    job = a_job(type="test.unknown")

    assert carry(store, job, configured(paused("type=test.unknown"))).ending is Ending.PARKED


def test_a_job_that_may_not_run_any_more_ends_though_it_is_paused(store: DynamoJobStore) -> None:
    job = a_job(deadline=NOW - SECOND)

    report = carry(store, job, PAUSED)

    assert (report.death, stored(store, job).state) == (DeathReason.DEADLINE, State.DEAD)


def test_a_pause_of_another_type_holds_nothing_back(store: DynamoJobStore) -> None:
    assert carry(store, a_job(), configured(paused("type=test.other"))).ending is Ending.SUCCEEDED


def test_a_paused_limit_key_is_not_asked_for_a_slot(store: DynamoJobStore) -> None:
    limited, limits = replace(a_job_type(), limit=LIMITED), _Limits()
    carry(store, a_job(), configured(), limited, limits)
    (line,) = limits.asked

    job = a_job()
    report = carry(store, job, configured(paused(f"limit={line.key}")), limited, limits)

    wait = stored(store, job).wait
    assert (report.ending, limits.asked) == (Ending.PARKED, [line])
    assert wait is not None
    assert wait.line == Line.for_pause(f"limit={line.key}")


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("stale", [False, True])
def test_before_a_park_by_a_stale_configuration_wake_hears_of_the_line(
    store: DynamoJobStore, limited: bool, stale: bool
) -> None:
    limits, job_type = _Limits(), replace(a_job_type(), limit=LIMITED if limited else None)
    carry(store, a_job(), configured(), job_type, limits)
    target = f"limit={limits.asked[0].key}" if limited else "type=test.job"
    configuration = dataclasses.replace(configured(paused(target, value={"rate": 3})), stale=stale)

    report = carry(store, a_job(), configuration, job_type, limits)

    assert report.ending is Ending.PARKED
    assert limits.listed == [(Line.for_pause(target), Rate(count=3, period=SECOND))] * stale


@pytest.mark.parametrize(("wait", "passed_on"), [(A_WAIT, 1), (PAUSE_WAIT, 0)])
def test_a_paused_job_passes_on_its_turn_at_a_limit_and_no_other(
    store: DynamoJobStore, monkeypatch: pytest.MonkeyPatch, wait: Wait, passed_on: int
) -> None:
    released: list[Line] = []

    def release(_self: Releaser, line: Line, **_more: Any) -> Sequence[Job]:
        released.append(line)
        return []

    monkeypatch.setattr(Releaser, "release", release)

    report = carry(store, a_job(wait=wait, holds=1, hold_cause=HoldCause(wait.cause)), PAUSED)

    assert report.ending is Ending.PARKED
    assert released == [A_WAIT.line] * passed_on
