"""Caps through the worker: a tenant never has more runs, no attempt is used up, and who has no cap writes nothing."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.test_limits import deliver, finish, live
from tests.support.deployed_functions import TENANT, Mill
from tests.support.http_events import call
from tests.support.jobs.limited import meetings
from tests.support.patience import PATIENCE_SECONDS
from tidemill import composition
from tidemill.application.configuration import Configurator
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits.limit_item import LIMIT_PREFIX
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.entrypoints import submit
from tidemill.local.wait import wait_until
from tidemill.names import JOB_KEY, Lane


@pytest.fixture(autouse=True)
def _afresh(mill: Mill) -> None:
    mill.stop_clock()
    meetings.forget()
    mill.script.handler = lambda _payload, run: meetings.run(run.tenant)


def change(mill: Mill, name: str, value: Any) -> None:
    """None for the removal."""
    changes = Configurator(store=DynamoConfiguration(mill.table.client, table=mill.table.name), clock=mill.now)
    if value is None:
        changes.remove(changes.read(), name, by="ops", reason="a test")
    else:
        changes.set(changes.read(), name, value, by="ops", reason="a test")
    mill.late += timedelta(seconds=10)


def limit_items(mill: Mill) -> list[str]:
    keys = [item[JOB_KEY]["S"] for item in mill.table.client.scan(TableName=mill.table.name)["Items"]]
    return [key.removeprefix(LIMIT_PREFIX) for key in keys if key.startswith(LIMIT_PREFIX)]


def test_a_tenant_has_no_more_runs_than_its_cap_and_all_its_jobs_end(mill: Mill) -> None:
    change(mill, f"caps.{TENANT}", 2)
    meetings.expected[TENANT] = 2
    ten = [mill.accepted() for _ in range(10)]

    finish(mill, ten)

    jobs = [mill.job(job_id) for job_id in ten]
    assert (meetings.most[TENANT], meetings.runs[TENANT]) == (2, 10)
    assert Counter(job.state for job in jobs) == {State.SUCCEEDED: 10}
    assert {(job.attempt, job.hops, job.holds.count, job.errors) for job in jobs} == {(1, 0, 0, ())}


def test_a_cap_that_is_lowered_while_released_jobs_are_on_their_way_runs_them_one_by_one(mill: Mill) -> None:
    change(mill, f"caps.{TENANT}", 5)
    ten = [mill.accepted() for _ in range(10)]
    mill.publish()
    # Five run, and hand their slots to those that were parked.
    mill.work(mill.receive())
    change(mill, f"caps.{TENANT}", 1)

    deliveries = 0
    # The clock stands, so no reservation ends by itself.
    while jobs := live(mill, ten):
        deliver(mill, [job for job in jobs if job.state is not State.PARKED])
        deliveries += 1
        assert deliveries <= len(ten)

    assert {mill.job(job_id).state for job_id in ten} == {State.SUCCEEDED}


def test_a_weight_multiplies_the_default_cap(mill: Mill) -> None:
    change(mill, "caps.default", 1)
    change(mill, f"weights.{TENANT}", 3)
    meetings.expected[TENANT] = 3
    jobs = [mill.accepted() for _ in range(6)]

    finish(mill, jobs)

    assert meetings.most[TENANT] == 3


def test_a_full_cap_delays_no_other_tenant(mill: Mill) -> None:
    change(mill, "caps.default", 1)
    crowd = [mill.accepted() for _ in range(5)]
    other = call(
        submit,
        "POST",
        "/jobs",
        body=json.dumps({"type": "test.scripted", "payload": {}}),
        headers={"content-type": "application/json"},
        iam={"accountId": "444455556666", "userId": "AROAOTHER:session", "callerId": "AROAOTHER:session"},
    )
    mill.run()

    assert other.status == 202
    assert meetings.runs["444455556666:AROAOTHER"] == 1
    finish(mill, crowd)


def test_a_lane_has_a_cap_of_its_own(mill: Mill) -> None:
    change(mill, "caps.default", 1)
    lanes = [mill.accepted(lane=lane) for lane in (Lane.DEFAULT, Lane.BULK)]
    meetings.expected[TENANT] = 2

    deliver(mill, live(mill, lanes))

    assert meetings.most[TENANT] == 2
    assert sorted(limit_items(mill)) == sorted(Line.for_cap(TENANT, lane).key for lane in (Lane.DEFAULT, Lane.BULK))


def test_after_the_cap_is_removed_its_parked_jobs_run(mill: Mill) -> None:
    change(mill, f"caps.{TENANT}", 1)
    jobs = [mill.accepted() for _ in range(4)]
    deliver(mill, live(mill, jobs))
    assert State.PARKED in {mill.job(job_id).state for job_id in jobs}

    change(mill, f"caps.{TENANT}", None)
    finish(mill, jobs)

    assert {mill.job(job_id).state for job_id in jobs} == {State.SUCCEEDED}


def test_wake_knows_the_raised_cap_of_a_tenant_whose_hash_names_its_line(mill: Mill) -> None:
    user = "AROA" + "T" * 300
    tenant = f"111122223333:{user}"
    iam = {"accountId": "111122223333", "userId": f"{user}:session", "callerId": f"{user}:session"}
    change(mill, f"caps.{tenant}", 1)
    body = json.dumps({"type": "test.scripted", "payload": {}})
    jobs = [str(mill.post_text(body, iam=iam).body["id"]) for _ in range(4)]

    def states() -> Counter[State]:
        return Counter(job.state for job_id in jobs if (job := composition.parts().store.get(tenant, job_id)))

    mill.publish()
    # One runs until the others are parked, and hands its slot on.
    mill.script.handler = lambda *_: wait_until(
        lambda: states()[State.PARKED] == len(jobs) - 1, PATIENCE_SECONDS, "the others to be parked"
    )
    mill.work(mill.receive())
    change(mill, f"caps.{tenant}", 5)

    mill.wake()

    assert states() == {State.SUCCEEDED: 1, State.QUEUED: 3}


def test_the_limit_of_a_type_counts_instead_of_the_cap(mill: Mill) -> None:
    change(mill, f"caps.{TENANT}", 1)
    meetings.expected["a"] = 2
    jobs = [mill.accepted({"key": "a"}, job_type="test.limited") for _ in range(2)]

    finish(mill, jobs)

    assert meetings.most["a"] == 2
    assert limit_items(mill) == [json.dumps(["test.limited", "a", TENANT])]


@pytest.mark.parametrize("settings", [{}, {"caps.other": 1}, {"caps.default": 1, f"caps.{TENANT}": None}])
def test_a_tenant_without_a_cap_costs_no_write(mill: Mill, settings: dict[str, Any]) -> None:
    changes = Configurator(store=DynamoConfiguration(mill.table.client, table=mill.table.name), clock=mill.now)
    for name, value in settings.items():
        changes.set(changes.read(), name, value, by="ops", reason="a test")
    mill.late += timedelta(seconds=10)
    mill.read_configuration()
    job_id = mill.accepted()

    mill.run()

    assert mill.job(job_id).state is State.SUCCEEDED
    assert limit_items(mill) == []
    # Insert, claim and settle.
    assert mill.calls["dynamodb.UpdateItem"] + mill.calls["dynamodb.PutItem"] == 3
