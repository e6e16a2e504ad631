"""The head item of a group: when it expires, and that no job is mistaken for another afterwards."""

from typing import Any

import pytest

from tests.support.builders import (
    NOW,
    RETENTION,
    SECOND,
    TENANT,
    a_job,
    stored,
    with_changes,
)
from tests.support.faulty_client import FaultyClient
from tests.support.group_jobs import GROUP, advance, end, enter, ids, items, redrive, run_all
from tests.support.interleave import meet
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.states import State
from tidemill.dynamodb.groups import groups
from tidemill.dynamodb.groups.group_items import HEAD_PREFIX
from tidemill.dynamodb.groups.groups import DynamoGroups
from tidemill.dynamodb.job_store import DynamoJobStore


@pytest.fixture
def other(table: Table) -> DynamoJobStore:
    """A second store on the same table."""
    return DynamoJobStore(table.client, table=table.name, retention=RETENTION)


def test_only_an_empty_group_may_expire(store: JobStore, table: Table) -> None:
    (head,) = enter(store)
    (order,) = items(table, HEAD_PREFIX)
    assert "expires_at" not in order

    run_all(store, [head])
    (order,) = items(table, HEAD_PREFIX)
    assert int(order["expires_at"]["N"]) >= (NOW + groups.IDLE_GROUP_KEPT).timestamp()

    assert enter(store)[0].group.sequence == 2
    (order,) = items(table, HEAD_PREFIX)
    assert "expires_at" not in order


def _forget_group(table: Table) -> None:
    """Delete the item, as the TTL does."""
    for order in items(table, HEAD_PREFIX):
        table.client.delete_item(TableName=table.name, Key={"pk": order["pk"]})


def test_an_expired_group_starts_over(store: JobStore, table: Table) -> None:
    dead = end(store, enter(store)[0], State.DEAD)
    advance(store)
    _forget_group(table)

    (job,) = enter(store)
    revived = redrive(store, dead)

    assert (job.group.sequence, job.state) == (1, State.QUEUED)
    assert (revived.group.sequence, revived.state) == (2, State.WAITING)
    assert run_all(store, [job]) == ids([job, revived])


@pytest.mark.parametrize("refilled", [False, True], ids=["gone", "created again"])
def test_a_submission_during_the_expiry_of_its_group_reads_again(
    store: JobStore, other: JobStore, table: Table, client: FaultyClient, refilled: bool
) -> None:
    """A new head item may have had as many writes as the expired one when it was read."""
    run_all(store, enter(store))

    def expire() -> None:
        _forget_group(table)
        if refilled:
            enter(other, 2)

    meet(client, expire)

    (job,) = enter(store)

    assert (job.group.sequence, job.state) == ((3, State.WAITING) if refilled else (1, State.QUEUED))


def test_a_deleted_head_does_not_block_its_group(store: JobStore) -> None:
    head, waiting = enter(store, 2)
    store.forget(end(store, head))

    assert advance(store) == stored(store, waiting)


@pytest.mark.parametrize("group", [GROUP, "another", None])
@pytest.mark.parametrize("place", [0, 1], ids=["head", "waiting"])
def test_a_new_job_under_an_expired_key_gets_its_own_position(
    store: JobStore, table: Table, place: int, group: str | None
) -> None:
    """The head has not moved past the expired job yet, and the new job must not be mistaken for it."""
    jobs = enter(store, 3)
    expired = with_changes(store.cancel(jobs[place], now=NOW), expires_at=NOW - SECOND)
    table.put(expired)
    again = store.insert_if_absent(a_job(id=expired.id, group=group, trace="another request"))
    rest = [job for job in jobs if job is not jobs[place]]

    if place == 0:
        assert advance(store) == stored(store, rest[0])

    assert run_all(store, rest) == [*ids(rest), *([again.id] if group == GROUP else [])]


def test_open_groups_are_distinguished_from_all_other_items(store: JobStore, table: Table) -> None:
    run_all(store, enter(store))
    enter(store, 2, group="open")
    store.insert_if_absent(a_job())

    items: Any = table.client.scan(TableName=table.name, ConsistentRead=True)["Items"]

    assert len(items) == 8
    assert list(DynamoGroups.open(items)) == [(TENANT, "open")]
