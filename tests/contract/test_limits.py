"""`acquire`, `release` and `reserve`: one conditional write takes slot and rate of a limit key, or neither."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import LEASE, MILLISECOND, NOW, SECOND, TENANT, fresh_token
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import Entered, LimitSlot
from tidemill.aws.attribute_values import seconds
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.limits.limit_state import AHEAD, NEAR, RESERVED, Turn, run_name
from tidemill.domain.limits.limits import LONGEST_RATE_PERIOD, Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits.limit_item import KEPT, LIMIT_PREFIX
from tidemill.dynamodb.limits.limit_write import HELD
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.names import JOB_KEY, TTL_ATTRIBUTE

ONE = Limit(concurrency=1)
TWO = Limit(concurrency=2)
THREE_A_MINUTE_RATE = Rate(count=3, period=timedelta(minutes=1))
THREE_A_MINUTE = Limit(rate=THREE_A_MINUTE_RATE)
BOTH = Limit(concurrency=2, rate=Rate(count=3, period=timedelta(minutes=1)))
LINE = Line.for_limit("test.job#a")
IN = Entered()


def a_slot(limit: Limit, **changes: Any) -> LimitSlot:
    token = fresh_token()
    slot = LimitSlot(line=LINE, token=token, until=NOW + LEASE, limit=limit, job=(TENANT, token))
    return replace(slot, **changes)


def item_of(table: Table) -> Any:
    (item,) = table.client.scan(TableName=table.name)["Items"]
    return item


def test_as_many_runs_enter_as_the_key_has_slots(limits: DynamoLimits) -> None:
    assert [limits.acquire(a_slot(TWO), now=NOW) for _ in range(3)] == [IN, IN, LINE]


def test_a_released_slot_is_free_at_once(limits: DynamoLimits) -> None:
    slots = [a_slot(TWO) for _ in range(2)]
    for slot in slots:
        limits.acquire(slot, now=NOW)

    assert not limits.release(slots[0])

    assert limits.acquire(a_slot(TWO), now=NOW) == IN
    assert limits.acquire(a_slot(TWO), now=NOW) == LINE


def test_a_slot_for_which_a_job_may_wait_is_not_released_but_handed_over(limits: DynamoLimits) -> None:
    slot, waiting = a_slot(ONE), a_slot(ONE)
    limits.acquire(slot, now=NOW)
    assert limits.acquire(waiting, now=NOW) == LINE

    assert limits.release(slot)
    state = limits.look(LINE)
    turn = Turn(reservation=waiting.reservation, due=NOW)
    assert limits.reserve(LINE, state, [turn], leaving=run_name(slot.token), now=NOW)

    assert limits.acquire(a_slot(ONE), now=NOW) == LINE
    released = replace(waiting, token=fresh_token(), released=True)
    assert limits.acquire(released, now=NOW) == Entered(line_stands=True)
    assert limits.acquire(a_slot(ONE), now=NOW) == LINE


def test_a_second_release_on_the_same_state_is_refused(limits: DynamoLimits) -> None:
    slot = a_slot(ONE)
    limits.acquire(slot, now=NOW)
    limits.acquire(a_slot(ONE), now=NOW)
    state = limits.look(LINE)

    turns = [[Turn(reservation=name, due=NOW)] for name in ("+a", "+b")]
    given = [limits.reserve(LINE, state, turn, leaving=run_name(slot.token), now=NOW) for turn in turns]

    assert given == [True, False]
    assert set(limits.look(LINE).held or ()) == {"+a"}


def test_a_reservation_ends_when_its_job_does_not_come(limits: DynamoLimits) -> None:
    slot = a_slot(ONE)
    limits.acquire(slot, now=NOW)
    limits.acquire(a_slot(ONE), now=NOW)
    turn = Turn(reservation="+gone", due=NOW)
    limits.reserve(LINE, limits.look(LINE), [turn], leaving=run_name(slot.token), now=NOW)

    assert limits.acquire(a_slot(ONE), now=NOW + RESERVED - MILLISECOND) == LINE
    assert limits.acquire(a_slot(ONE), now=NOW + RESERVED) == Entered(line_stands=True)


def test_a_released_job_whose_reservation_has_ended_takes_that_of_another(limits: DynamoLimits) -> None:
    slot = a_slot(ONE)
    limits.acquire(slot, now=NOW)
    limits.acquire(a_slot(ONE), now=NOW)
    turn = Turn(reservation="+other", due=NOW)
    limits.reserve(LINE, limits.look(LINE), [turn], leaving=run_name(slot.token), now=NOW)

    assert limits.acquire(a_slot(ONE, released=True), now=NOW) == Entered(line_stands=True)


def test_a_slot_is_free_when_its_lease_expires(limits: DynamoLimits) -> None:
    limits.acquire(a_slot(ONE), now=NOW)

    assert limits.acquire(a_slot(ONE), now=NOW + LEASE - MILLISECOND) == LINE
    assert isinstance(limits.acquire(a_slot(ONE, until=NOW + 2 * LEASE), now=NOW + LEASE), Entered)


def test_a_late_release_does_not_free_the_slot_of_the_run_that_holds_it_now(limits: DynamoLimits) -> None:
    late = a_slot(ONE)
    limits.acquire(late, now=NOW)
    limits.acquire(a_slot(ONE, until=NOW + 2 * LEASE), now=NOW + LEASE)

    limits.release(late)

    assert limits.acquire(a_slot(ONE), now=NOW + LEASE) == LINE


def test_a_second_release_or_one_without_an_entry_does_nothing(limits: DynamoLimits, table: Table) -> None:
    assert not limits.release(a_slot(ONE))
    assert table.client.scan(TableName=table.name)["Items"] == []

    slot = a_slot(ONE)
    limits.acquire(slot, now=NOW)
    limits.release(slot)
    limits.release(slot)

    assert limits.acquire(a_slot(ONE), now=NOW) == IN


def test_each_key_has_slots_of_its_own(limits: DynamoLimits) -> None:
    keys = ["a", "b", "b#1", "#", "é", "x" * 5_000, "x" * 5_000 + "y"]

    assert [limits.acquire(a_slot(ONE, line=Line.for_limit(key)), now=NOW) for key in keys] == [IN] * len(keys)


def test_wake_finds_a_line_before_its_first_job_is_parked_until_it_is_cleared(limits: DynamoLimits) -> None:
    limits.acquire(a_slot(ONE), now=NOW)
    assert list(limits.lines()) == []

    limits.acquire(a_slot(ONE), now=NOW)
    assert list(limits.lines()) == [LINE]
    seen = limits.look(LINE)
    assert (seen.limit, seen.last_at) == (ONE, NOW)

    limits.acquire(a_slot(ONE), now=NOW + SECOND)
    limits.clear(LINE, seen)
    assert list(limits.lines()) == [LINE], "another job has found no room since"

    limits.clear(LINE, limits.look(LINE))
    assert list(limits.lines()) == []


def test_wake_finds_the_line_of_a_type_before_its_first_job_is_parked(limits: DynamoLimits, table: Table) -> None:
    line = Line.for_type("mail.welcome")

    limits.list_line(line, THREE_A_MINUTE_RATE, job=(TENANT, "a"), now=NOW)

    assert list(limits.lines()) == [line]
    seen = limits.look(line)
    assert (seen.limit, seen.last, seen.last_at) == (THREE_A_MINUTE, (TENANT, "a"), NOW)
    assert TTL_ATTRIBUTE not in item_of(table), "it waits for longer than any other item is kept"
    limits.clear(line, seen)
    assert list(limits.lines()) == []
    assert item_of(table)[TTL_ATTRIBUTE] == seconds(NOW + KEPT), "the next line continues its rate"

    limits.list_line(line, THREE_A_MINUTE_RATE, job=(TENANT, "b"), now=NOW + SECOND)
    assert list(limits.lines()) == [line]
    assert TTL_ATTRIBUTE not in item_of(table)


@pytest.mark.parametrize(("later", "written"), [(timedelta(minutes=1) - MILLISECOND, 0), (timedelta(minutes=1), 1)])
def test_one_write_lists_a_line_for_all_jobs_of_a_minute(
    limits: DynamoLimits, client: FaultyClient, later: timedelta, written: int
) -> None:
    line = Line.for_type("mail.welcome")
    limits.list_line(line, THREE_A_MINUTE_RATE, job=(TENANT, "a"), now=NOW)
    seen = limits.look(line)
    writes: list[object] = []
    client.watch = lambda applied: writes.append(applied) if applied else None

    limits.list_line(line, THREE_A_MINUTE_RATE, job=(TENANT, "b"), now=NOW + later)

    assert len(writes) == written
    limits.clear(line, seen)
    assert bool(list(limits.lines())) is bool(written), "a later job has listed it since"


def test_a_line_that_others_write_all_the_time_is_not_taken_for_listed(limits: DynamoLimits) -> None:
    class Contended(DynamoLimits):
        def _holds(self, *_: object, **__: object) -> bool:
            return False

    contended = Contended(limits._client, table=limits._table)

    with pytest.raises(StoreUnavailableError, match=r"other workers write the item of the line type mail\.welcome"):
        contended.list_line(Line.for_type("mail.welcome"), THREE_A_MINUTE_RATE, job=(TENANT, "a"), now=NOW)


def test_a_burst_of_the_rate_enters_at_once_and_one_more_each_interval(limits: DynamoLimits) -> None:
    assert [limits.acquire(a_slot(THREE_A_MINUTE), now=NOW) for _ in range(3)] == [IN] * 3

    first = a_slot(THREE_A_MINUTE)
    assert limits.acquire(first, now=NOW) == NOW + 20 * SECOND
    early = replace(first, released=True)
    assert limits.acquire(early, now=NOW + 19 * SECOND - MILLISECOND) == NOW + 40 * SECOND
    assert limits.acquire(replace(first, released=True), now=NOW + 20 * SECOND) == IN
    assert limits.acquire(replace(first, token="t", released=True), now=NOW + 20 * SECOND) != IN


def test_jobs_that_come_a_little_late_one_by_one_lose_no_start_of_a_slow_rate(limits: DynamoLimits) -> None:
    one_in_twenty = Limit(rate=Rate(count=1, period=20 * SECOND))
    assert limits.acquire(a_slot(one_in_twenty), now=NOW) == IN
    waiting = [a_slot(one_in_twenty) for _ in range(3)]
    times = [limits.acquire(slot, now=NOW) for slot in waiting]
    assert times == [NOW + 20 * SECOND, NOW + 40 * SECOND, NOW + 60 * SECOND]

    late = [900 * MILLISECOND, 300 * MILLISECOND, 0 * MILLISECOND]
    for slot, at, delay in zip(waiting, times, late, strict=True):
        assert isinstance(at, datetime)
        assert limits.acquire(replace(slot, released=True), now=at + delay) == IN
    # No other job profits.
    assert limits.acquire(a_slot(one_in_twenty), now=NOW + 60 * SECOND) != IN


def test_a_key_that_was_idle_has_its_burst_again_and_no_more(limits: DynamoLimits) -> None:
    limits.acquire(a_slot(THREE_A_MINUTE), now=NOW)
    later = NOW + timedelta(hours=3)

    assert [limits.acquire(a_slot(THREE_A_MINUTE), now=later) == IN for _ in range(4)] == [True, True, True, False]


@pytest.mark.slow
def test_a_rate_that_no_number_of_microseconds_divides_holds(limits: DynamoLimits) -> None:
    seven_a_second = Limit(rate=Rate(count=7, period=SECOND))
    moments = [NOW + number * 10 * MILLISECOND for number in range(301)]

    # They enter as released jobs, which nothing but the rate holds back.
    entered = [
        at for at in moments if isinstance(limits.acquire(a_slot(seven_a_second, released=True), now=at), Entered)
    ]

    assert 7 + 19 <= len(entered) <= 7 + 21
    assert max(sum(start <= moment < start + SECOND for moment in entered) for start in entered) <= 14


def test_jobs_that_wait_for_a_rate_get_different_times_and_those_far_back_are_parked(limits: DynamoLimits) -> None:
    for _ in range(3):
        limits.acquire(a_slot(THREE_A_MINUTE), now=NOW)

    told = [limits.acquire(a_slot(THREE_A_MINUTE), now=NOW) for _ in range(8)]

    assert told == [NOW + number * 20 * SECOND for number in range(1, 7)] + [LINE, LINE]
    assert AHEAD == 120 * SECOND


def test_while_a_line_stands_a_newcomer_gets_only_a_near_time(limits: DynamoLimits) -> None:
    slowly = Limit(rate=Rate(count=1, period=timedelta(seconds=200)))
    limits.acquire(a_slot(slowly), now=NOW)
    assert limits.acquire(a_slot(slowly), now=NOW) == LINE

    later = NOW + 200 * SECOND - NEAR
    assert limits.acquire(a_slot(slowly), now=later - MILLISECOND) == LINE
    assert limits.acquire(a_slot(slowly), now=later) == NOW + 200 * SECOND


@pytest.mark.parametrize("period", [timedelta(seconds=100), timedelta(days=1)])
@pytest.mark.parametrize("released", [False, True])
def test_the_times_of_an_override_do_not_outlive_it(limits: DynamoLimits, period: timedelta, *, released: bool) -> None:
    """A slow rate moves the arrival time on by its interval, and gives a job that waits a time after it."""
    slowly = Limit(rate=Rate(count=1, period=period))
    assert limits.acquire(a_slot(slowly), now=NOW) == IN
    assert limits.acquire(a_slot(slowly), now=NOW) != IN

    now = NOW + SECOND
    told = [limits.acquire(a_slot(THREE_A_MINUTE, released=released), now=now) for _ in range(3)]

    assert isinstance(told[0], Entered)
    assert told[1:] == [now + 20 * SECOND, LINE if period.days else now + 40 * SECOND]


def test_a_newcomer_does_not_take_the_time_that_was_promised_to_a_released_job(limits: DynamoLimits) -> None:
    for _ in range(4):
        limits.acquire(a_slot(THREE_A_MINUTE), now=NOW)

    assert limits.acquire(a_slot(THREE_A_MINUTE), now=NOW + 21 * SECOND) == NOW + 40 * SECOND
    assert limits.acquire(a_slot(THREE_A_MINUTE, released=True), now=NOW + 21 * SECOND) == IN


def test_a_slot_is_not_taken_when_the_rate_refuses(limits: DynamoLimits, table: Table) -> None:
    for _ in range(3):
        slot = a_slot(BOTH)
        limits.acquire(slot, now=NOW)
        limits.release(slot)

    assert limits.acquire(a_slot(BOTH), now=NOW) == NOW + 20 * SECOND
    assert item_of(table)[HELD] == {"M": {}}


def test_the_rate_is_not_used_when_no_slot_is_free(limits: DynamoLimits) -> None:
    slots = [a_slot(BOTH) for _ in range(2)]
    for slot in slots:
        limits.acquire(slot, now=NOW)
    for _ in range(5):
        assert limits.acquire(a_slot(BOTH), now=NOW) == LINE

    limits.vacate(LINE, run_name(slots[0].token))

    assert isinstance(limits.acquire(a_slot(BOTH), now=NOW), Entered)


@pytest.mark.parametrize("limit", [ONE, TWO, THREE_A_MINUTE, BOTH])
def test_a_run_whose_write_the_sdk_sent_twice_has_entered_once(
    limits: DynamoLimits, client: FaultyClient, limit: Limit
) -> None:
    first = a_slot(limit)
    limits.acquire(first, now=NOW)
    limits.release(first)
    client.faults = [Fault.SENT_TWICE]
    assert limits.acquire(a_slot(limit), now=NOW) == IN

    room = limit.concurrency or 2
    assert [limits.acquire(a_slot(limit), now=NOW) == IN for _ in range(room)] == [True] * (room - 1) + [False]


def test_an_item_of_limits_is_not_a_job_and_expires_only_when_it_limits_nothing(
    limits: DynamoLimits, table: Table
) -> None:
    limits.acquire(a_slot(BOTH), now=NOW)

    item = item_of(table)
    assert item[JOB_KEY]["S"] == f"{LIMIT_PREFIX}test.job#a"
    assert not {"state", "due", "schema"} & item.keys()
    assert int(item["expires_at"]["N"]) >= (NOW + KEPT).timestamp()
    assert LONGEST_RATE_PERIOD + AHEAD < KEPT


def test_a_hundred_slots_are_written_for_two_units(limits: DynamoLimits, table: Table) -> None:
    """Each update of an item is charged by its size, a unit for each kilobyte."""
    hundred = Limit(concurrency=100)
    for _ in range(100):
        assert limits.acquire(a_slot(hundred), now=NOW) == IN

    assert limits.acquire(a_slot(hundred), now=NOW) == LINE
    slots = item_of(table)[HELD]["M"]
    # Name, number and a byte for each entry of a map:
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    assert sum(len(name) + len(until["N"]) // 2 + 2 + 1 for name, until in slots.items()) < 2_048 - 256


@pytest.mark.parametrize("limit", [Limit(concurrency=3), THREE_A_MINUTE])
def test_concurrent_runs_enter_only_up_to_the_limit(limits: DynamoLimits, limit: Limit) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: limits.acquire(a_slot(limit), now=NOW), range(24)))

    assert sum(isinstance(answer, Entered) for answer in answers) == 3
