"""Limits per key through the worker: never exceeded, no attempt burned, and everybody gets there."""

import json
from collections import Counter
from datetime import datetime, timedelta

import pytest

from tests.support.builders import fresh_token
from tests.support.deployed_functions import INVOCATION, TENANT, Mill
from tests.support.faulty_client import Fault
from tests.support.jobs.limited import limited, meetings
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits.limit_item import LIMIT_PREFIX
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.names import JOB_KEY
from tidemill.sqs import messages


@pytest.fixture(autouse=True)
def _afresh(mill: Mill) -> None:
    mill.stop_clock()
    meetings.forget()


def live(mill: Mill, job_ids: list[str]) -> list[Job]:
    return [job for job in map(mill.job, job_ids) if not job.state.terminal]


def deliver(mill: Mill, jobs: list[Job]) -> None:
    """Messages for jobs whose time has come, as the lane would deliver them."""
    due = [job for job in jobs if job.due and job.due <= mill.now()][:10]
    if due:
        mill.work(mill.event(*(messages.encode(reference_to(job)) for job in due)))


def finish(mill: Mill, job_ids: list[str]) -> None:
    """Until all have ended, a few seconds at a time."""
    for _ in range(200):
        if not (jobs := live(mill, job_ids)):
            return
        deliver(mill, [job for job in jobs if job.state is not State.PARKED])
        mill.wake()
        mill.late += timedelta(seconds=5)
    raise AssertionError("some never ran")


def take_a_slot(mill: Mill) -> datetime:
    """Take a slot as a worker that is killed right after. Returns the end of its lease."""
    assert limited.limit is not None
    limits = DynamoLimits(mill.table.client, table=mill.table.name)
    until = mill.now() + INVOCATION
    slot = LimitSlot(
        line=Line.for_limit(json.dumps(["test.limited", "a", TENANT])),
        limit=limited.limit,
        token=fresh_token(),
        until=until,
        job=(TENANT, "killed"),
    )
    assert isinstance(limits.acquire(slot, now=mill.now()), Entered)
    return until


def test_at_most_two_jobs_of_a_key_run_at_once_in_a_batch_of_ten_and_all_finish(mill: Mill) -> None:
    meetings.expected["a"] = 2
    ten = [mill.accepted({"key": "a"}, job_type="test.limited") for _ in range(10)]

    finish(mill, ten)

    jobs = [mill.job(job_id) for job_id in ten]
    assert (meetings.most["a"], meetings.runs["a"]) == (2, 10)
    assert Counter(job.state for job in jobs) == {State.SUCCEEDED: 10}
    # To be parked counts as neither attempt, hop nor error.
    assert {(job.attempt, job.hops, job.holds.count, job.errors) for job in jobs} == {(1, 0, 0, ())}
    assert max(job.generation for job in jobs) > 1


def test_a_full_limit_key_delays_no_job_of_another_key(mill: Mill) -> None:
    crowd = [mill.accepted({"key": "a"}, job_type="test.limited") for _ in range(6)]
    others = [mill.accepted({"key": key}, job_type="test.limited") for key in "bcde"]

    deliver(mill, live(mill, [*crowd, *others]))

    assert {mill.job(job_id).state for job_id in others} == {State.SUCCEEDED}
    assert {mill.job(job_id).generation for job_id in others} == {1}
    finish(mill, crowd)


def test_a_job_whose_limit_is_full_is_parked_and_uses_up_no_attempt(mill: Mill) -> None:
    job_id = mill.accepted({"key": "a"}, job_type="test.limited")
    for _ in range(2):
        take_a_slot(mill)

    deliver(mill, live(mill, [job_id]))

    parked = mill.job(job_id)
    assert (parked.state, parked.attempt, parked.holds.count) == (State.PARKED, 0, 1)
    assert meetings.runs["a"] == 0


def test_the_slot_of_a_killed_worker_is_free_when_its_lease_expires(mill: Mill) -> None:
    job_id = mill.accepted({"key": "a"}, job_type="test.limited")
    taken_until = [take_a_slot(mill) for _ in range(2)]
    deliver(mill, live(mill, [job_id]))
    assert mill.job(job_id).state is State.PARKED

    mill.late += max(taken_until) - mill.now()
    mill.wake()
    deliver(mill, live(mill, [job_id]))

    assert mill.job(job_id).state is State.SUCCEEDED


def test_runs_start_no_more_often_than_the_rate_allows(mill: Mill) -> None:
    jobs = [mill.accepted({"key": "a"}, job_type="test.rated") for _ in range(5)]

    deliver(mill, live(mill, jobs))
    assert meetings.runs["a"] == 3

    waits = sorted((job.due - mill.now()).total_seconds() for job in live(mill, jobs) if job.due)
    assert waits == pytest.approx([20, 40], abs=1)
    finish(mill, jobs)
    assert meetings.runs["a"] == 5


def test_unavailable_limits_cost_no_attempt(mill: Mill) -> None:
    job_id = mill.accepted({"key": "a"}, job_type="test.limited")
    # The claim is applied, the slot is not, nor is it given back.
    mill.client.faults = [None, Fault.NOT_SENT, Fault.NOT_SENT]

    deliver(mill, live(mill, [job_id]))

    held = mill.job(job_id)
    assert (held.state, held.attempt, held.holds.count, held.errors) == (State.QUEUED, 0, 1, ())
    finish(mill, [job_id])


def test_a_slot_that_cannot_be_released_costs_the_job_nothing(mill: Mill) -> None:
    job_id = mill.accepted({"key": "a"}, job_type="test.limited")
    # Its claim, two writes to enter, since the key is new, the settle, and the release.
    mill.client.faults = [None, None, None, None, Fault.NOT_SENT]

    deliver(mill, live(mill, [job_id]))

    assert mill.job(job_id).state is State.SUCCEEDED
    (item,) = [
        item
        for item in mill.table.client.scan(TableName=mill.table.name)["Items"]
        if item[JOB_KEY]["S"].startswith(LIMIT_PREFIX)
    ]
    assert len(item["held"]["M"]) == 1
