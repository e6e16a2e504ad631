"""`acquire` and `release`: one conditional write takes the slot and the rate of a limit key, or neither."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import LEASE, MILLISECOND, NOW, SECOND, fresh_token
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import LimitSlot
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.limits import LONGEST_RATE_PERIOD, Limit, Rate
from tidemill.dynamodb.limit_item import KEPT, LIMIT_PREFIX
from tidemill.dynamodb.limits import LONGEST_LINE, LONGEST_WAIT_SECONDS, DynamoLimits
from tidemill.names import JOB_KEY

ONE = Limit(concurrency=1)
TWO = Limit(concurrency=2)
THREE_A_MINUTE = Limit(rate=Rate(count=3, period=timedelta(minutes=1)))
BOTH = Limit(concurrency=2, rate=Rate(count=3, period=timedelta(minutes=1)))


@pytest.fixture
def limits(client: FaultyClient, table: Table) -> DynamoLimits:
    return DynamoLimits(client, table=table.name, draw=lambda: 0.5)  # type: ignore[arg-type]  # a proxy


def a_slot(limit: Limit, **changes: Any) -> LimitSlot:
    return replace(LimitSlot(limit_key="test.job#a", token=fresh_token(), until=NOW + LEASE, limit=limit), **changes)


def item_of(table: Table) -> Any:
    (item,) = table.client.scan(TableName=table.name)["Items"]
    return item


def test_as_many_runs_enter_as_the_key_has_slots(limits: DynamoLimits) -> None:
    slots = [a_slot(TWO) for _ in range(3)]

    waits = [limits.acquire(slot, now=NOW) for slot in slots]

    assert waits[:2] == [None, None]
    assert waits[2] is not None
    assert waits[2] > NOW


def test_a_released_slot_is_free_at_once(limits: DynamoLimits) -> None:
    slots = [a_slot(TWO) for _ in range(2)]
    for slot in slots:
        limits.acquire(slot, now=NOW)

    limits.release(slots[0])

    assert limits.acquire(a_slot(TWO), now=NOW) is None
    assert limits.acquire(a_slot(TWO), now=NOW) is not None


def test_a_slot_is_free_when_its_lease_expires(limits: DynamoLimits) -> None:
    limits.acquire(a_slot(ONE), now=NOW)

    assert limits.acquire(a_slot(ONE), now=NOW + LEASE - MILLISECOND) is not None
    assert limits.acquire(a_slot(ONE, until=NOW + 2 * LEASE), now=NOW + LEASE) is None


def test_a_late_release_does_not_free_the_slot_of_the_run_that_holds_it_now(limits: DynamoLimits) -> None:
    late = a_slot(ONE)
    limits.acquire(late, now=NOW)
    limits.acquire(a_slot(ONE, until=NOW + 2 * LEASE), now=NOW + LEASE)

    limits.release(late)

    assert limits.acquire(a_slot(ONE), now=NOW + LEASE) is not None


def test_a_second_release_or_one_without_an_entry_does_nothing(limits: DynamoLimits, table: Table) -> None:
    limits.release(a_slot(ONE))
    assert table.client.scan(TableName=table.name)["Items"] == []

    slot = a_slot(ONE)
    limits.acquire(slot, now=NOW)
    limits.release(slot)
    limits.release(slot)

    assert limits.acquire(a_slot(ONE), now=NOW) is None


def test_each_key_has_slots_of_its_own(limits: DynamoLimits) -> None:
    keys = ["a", "b", "b#1", "#", "é", "x" * 5_000, "x" * 5_000 + "y"]

    assert [limits.acquire(a_slot(ONE, limit_key=key), now=NOW) for key in keys] == [None] * len(keys)


def test_the_wait_for_a_slot_grows_with_each_hold_up_to_a_minute(limits: DynamoLimits) -> None:
    limits.acquire(a_slot(ONE), now=NOW)

    waits = [limits.acquire(a_slot(ONE, holds=holds), now=NOW) for holds in (0, 1, 2, 100_000)]

    assert waits == [NOW + seconds * SECOND * 0.75 for seconds in (2, 4, 8, LONGEST_WAIT_SECONDS)]


def test_a_burst_of_the_rate_enters_at_once_and_one_more_each_interval(limits: DynamoLimits) -> None:
    assert [limits.acquire(a_slot(THREE_A_MINUTE), now=NOW) for _ in range(3)] == [None] * 3

    assert limits.acquire(a_slot(THREE_A_MINUTE), now=NOW) == NOW + 20 * SECOND
    assert limits.acquire(a_slot(THREE_A_MINUTE), now=NOW + 20 * SECOND - MILLISECOND) is not None
    assert limits.acquire(a_slot(THREE_A_MINUTE), now=NOW + 20 * SECOND) is None
    assert limits.acquire(a_slot(THREE_A_MINUTE), now=NOW + 20 * SECOND) is not None


def test_a_key_that_was_idle_has_its_burst_again_and_no_more(limits: DynamoLimits) -> None:
    limits.acquire(a_slot(THREE_A_MINUTE), now=NOW)
    later = NOW + timedelta(hours=3)

    assert [limits.acquire(a_slot(THREE_A_MINUTE), now=later) is None for _ in range(4)] == [True, True, True, False]


@pytest.mark.slow
def test_a_rate_that_no_number_of_microseconds_divides_holds(limits: DynamoLimits) -> None:
    seven_a_second = Limit(rate=Rate(count=7, period=SECOND))
    moments = [NOW + number * 10 * MILLISECOND for number in range(301)]

    entered = [moment for moment in moments if limits.acquire(a_slot(seven_a_second), now=moment) is None]

    assert 7 + 19 <= len(entered) <= 7 + 21
    assert max(sum(start <= moment < start + SECOND for moment in entered) for start in entered) <= 14


def test_runs_that_wait_for_a_rate_get_different_times(limits: DynamoLimits) -> None:
    for _ in range(3):
        limits.acquire(a_slot(THREE_A_MINUTE), now=NOW)

    told = [limits.acquire(a_slot(THREE_A_MINUTE), now=NOW) for _ in range(5)]

    assert told == [NOW + number * 20 * SECOND for number in range(1, 6)]


def test_a_slot_is_not_taken_when_the_rate_refuses(limits: DynamoLimits, table: Table) -> None:
    for _ in range(3):
        slot = a_slot(BOTH)
        limits.acquire(slot, now=NOW)
        limits.release(slot)

    assert limits.acquire(a_slot(BOTH), now=NOW) == NOW + 20 * SECOND
    assert not [name for name in item_of(table) if name.startswith("slot_")]


def test_the_rate_is_not_used_when_no_slot_is_free(limits: DynamoLimits) -> None:
    slots = [a_slot(BOTH) for _ in range(2)]
    for slot in slots:
        limits.acquire(slot, now=NOW)
    for _ in range(5):
        assert limits.acquire(a_slot(BOTH), now=NOW) is not None

    limits.release(slots[0])

    assert limits.acquire(a_slot(BOTH), now=NOW) is None


@pytest.mark.parametrize("limit", [ONE, TWO, THREE_A_MINUTE, BOTH])
def test_a_run_whose_write_the_sdk_sent_twice_has_entered_once(
    limits: DynamoLimits, client: FaultyClient, limit: Limit
) -> None:
    client.faults = [Fault.SENT_TWICE]
    assert limits.acquire(a_slot(limit), now=NOW) is None

    room = limit.concurrency or 3
    assert [limits.acquire(a_slot(limit), now=NOW) is None for _ in range(room)] == [True] * (room - 1) + [False]


def test_a_slot_whose_answer_was_lost_is_released(limits: DynamoLimits, client: FaultyClient) -> None:
    client.faults = [Fault.ANSWER_LOST]
    with pytest.raises(StoreUnavailableError):
        limits.acquire(a_slot(ONE), now=NOW)

    assert limits.acquire(a_slot(ONE), now=NOW) is None


def test_an_item_of_limits_is_not_a_job_and_expires_only_when_it_limits_nothing(
    limits: DynamoLimits, table: Table
) -> None:
    limits.acquire(a_slot(BOTH), now=NOW)

    item = item_of(table)
    assert item[JOB_KEY]["S"] == f'{LIMIT_PREFIX}["test.job#a"]'
    assert not {"state", "due", "schema"} & item.keys()
    assert int(item["expires_at"]["N"]) >= (NOW + KEPT).timestamp()
    assert LONGEST_RATE_PERIOD + LONGEST_LINE < KEPT


@pytest.mark.parametrize("limit", [Limit(concurrency=3), THREE_A_MINUTE])
def test_concurrent_runs_enter_only_up_to_the_limit(limits: DynamoLimits, limit: Limit) -> None:
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(lambda _: limits.acquire(a_slot(limit), now=NOW), range(24)))

    assert waits.count(None) == 3
