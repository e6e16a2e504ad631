"""Limits of several types, and of each lane, through the worker."""

import json
from collections import Counter

import pytest

from tests.integration.test_caps import change, limit_items
from tests.integration.test_limits import deliver, finish, live
from tests.support.builders import fresh_token
from tests.support.deployed_functions import INVOCATION, TENANT, Mill
from tests.support.jobs.limited import meetings
from tests.support.jobs.shared_limits import charged, laned
from tidemill.application.job_types import JobType
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.states import State
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.names import Lane

_TYPES = ("test.charged", "test.refunded")


@pytest.fixture(autouse=True)
def _afresh(mill: Mill) -> None:
    mill.stop_clock()
    meetings.forget()


def take_a_slot(mill: Mill, job_type: JobType, *, lane: Lane = Lane.DEFAULT) -> None:
    """Take a slot as a worker that is killed right after."""
    line = job_type.limit_line(job_type.parse(json.dumps({"key": "a"})), tenant=TENANT, lane=lane)
    assert line is not None
    assert job_type.limit is not None
    slot = LimitSlot(
        line=line, limit=job_type.limit, token=fresh_token(), until=mill.now() + INVOCATION, job=(TENANT, "killed")
    )
    limits = DynamoLimits(mill.table.client, table=mill.table.name)
    assert isinstance(limits.acquire(slot, now=mill.now()), Entered)


def test_the_runs_of_two_types_count_together_and_all_jobs_finish(mill: Mill) -> None:
    meetings.expected["a"] = 2
    ten = [mill.accepted({"key": "a"}, job_type=_TYPES[number % 2]) for number in range(10)]

    finish(mill, ten)

    jobs = [mill.job(job_id) for job_id in ten]
    assert (meetings.most["a"], meetings.runs["a"]) == (2, 10)
    assert Counter(job.state for job in jobs) == {State.SUCCEEDED: 10}
    assert {(job.attempt, job.errors) for job in jobs} == {(1, ())}
    assert limit_items(mill) == [json.dumps(["limit:downstream", "a", TENANT])]


def test_the_jobs_of_two_types_wait_in_one_line_in_the_order_submitted(mill: Mill) -> None:
    take_a_slot(mill, charged)
    take_a_slot(mill, charged)
    jobs = [mill.accepted({"key": "a"}, job_type=type_) for type_ in reversed(_TYPES)]
    deliver(mill, live(mill, jobs))
    assert {mill.job(job_id).state for job_id in jobs} == {State.PARKED}
    assert len({job.wait.key for job in live(mill, jobs) if job.wait}) == 1

    change(mill, "limits.downstream.concurrency_per_key", 1)
    # The leases of the killed workers have ended.
    mill.late += INVOCATION
    mill.wake()

    assert [mill.job(job_id).state for job_id in jobs] == [State.QUEUED, State.PARKED]


def test_an_override_of_a_type_does_not_act_on_its_shared_limit(mill: Mill) -> None:
    for type_ in _TYPES:
        change(mill, f"types.{type_}.concurrency_per_key", 9)
    take_a_slot(mill, charged)
    take_a_slot(mill, charged)
    job_id = mill.accepted({"key": "a"}, job_type="test.refunded")

    deliver(mill, live(mill, [job_id]))
    mill.wake()

    assert mill.job(job_id).state is State.PARKED


def test_an_override_of_a_shared_limit_acts_on_each_of_its_types(mill: Mill) -> None:
    change(mill, "limits.downstream.concurrency_per_key", 1)
    take_a_slot(mill, charged)
    jobs = [mill.accepted({"key": "a"}, job_type=type_) for type_ in _TYPES]

    deliver(mill, live(mill, jobs))

    assert {mill.job(job_id).state for job_id in jobs} == {State.PARKED}


def test_an_urgent_job_does_not_wait_behind_the_bulk_ones_of_its_type(mill: Mill) -> None:
    take_a_slot(mill, laned, lane=Lane.BULK)
    bulk = mill.accepted({"key": "a"}, job_type="test.laned", lane=Lane.BULK)
    urgent = mill.accepted({"key": "a"}, job_type="test.laned")

    deliver(mill, live(mill, [bulk, urgent]))

    assert [mill.job(job_id).state for job_id in (bulk, urgent)] == [State.PARKED, State.SUCCEEDED]
    (line,) = {job.wait.key for job in live(mill, [bulk]) if job.wait}
    assert line == json.dumps(["limit:lanes", "", {"lane": "bulk"}, TENANT])


def test_an_operator_pauses_a_shared_limit_key(mill: Mill) -> None:
    change(mill, f"pauses.limit={json.dumps(['limit:downstream', 'a', TENANT])}", {})
    jobs = [mill.accepted({"key": key}, job_type="test.charged") for key in "ab"]

    deliver(mill, live(mill, jobs))

    assert [mill.job(job_id).state for job_id in jobs] == [State.PARKED, State.SUCCEEDED]
