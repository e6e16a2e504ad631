"""How many writes and reads a run needs to enter its limit, to get a time, or to be parked."""

from datetime import timedelta

import pytest

from tests.contract.test_limit_races import LINE, ONE, PACE, PACED, TWO, a_slot, applied
from tests.support.builders import MILLISECOND, NOW, SECOND
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.limits.limit_state import LimitState, Turn, run_name
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits import limit_item
from tidemill.dynamodb.limits.limits import DynamoLimits


def counting(client: FaultyClient) -> list[bool]:
    """Grows by one with each write."""
    writes: list[bool] = []
    client.watch = lambda done: None if done else writes.append(True)
    return writes


def released_as_the_limit_is_lowered(limits: DynamoLimits) -> tuple[LimitSlot, LimitSlot]:
    """A run that keeps the only slot that is left, and a job whose reservation is one too many."""
    stays, leaves = a_slot(TWO), a_slot(TWO)
    for slot in (stays, leaves, a_slot(TWO)):
        limits.acquire(slot, now=NOW)
    released = a_slot(ONE, released=True)
    turn = Turn(reservation=released.reservation, due=NOW)
    limits.reserve(LINE, limits.look(LINE), [turn], leaving=run_name(leaves.token), now=NOW)
    return stays, released


def test_a_run_of_a_rate_in_use_costs_one_write(limits: DynamoLimits, client: FaultyClient) -> None:
    """It costs two in a process that has not seen the key, and after the rate has become faster."""
    burst = Limit(rate=Rate(count=60, period=timedelta(minutes=1)))
    limits.acquire(a_slot(burst), now=NOW)
    writes = counting(client)

    for number in range(1, 60):
        assert isinstance(limits.acquire(a_slot(burst), now=NOW + number * SECOND / 2), Entered)

    assert len(writes) == 59
    assert limits.look(LINE).arrival == NOW + timedelta(minutes=1)


def test_a_run_does_not_wait_because_of_what_its_process_remembers(
    limits: DynamoLimits, client: FaultyClient, table: Table
) -> None:
    daily, fast = Rate(count=2, period=timedelta(days=1)), Rate(count=60, period=timedelta(minutes=1))
    for _ in range(2):
        limits.acquire(a_slot(Limit(rate=daily)), now=NOW)
    DynamoLimits(table.client, table=table.name).acquire(a_slot(Limit(rate=fast)), now=NOW + SECOND)
    later, writes = NOW + timedelta(hours=1), counting(client)

    assert isinstance(limits.acquire(a_slot(Limit(rate=fast)), now=later), Entered)
    assert len(writes) == 2
    assert isinstance(limits.acquire(a_slot(Limit(rate=fast)), now=later), Entered)
    assert len(writes) == 3


def test_a_process_remembers_a_bounded_number_of_keys(limits: DynamoLimits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.dynamodb.limits.limits._MOST_REMEMBERED", 3)
    for number in range(10):
        limits.acquire(a_slot(PACED, line=Line.for_limit(f"test.job#{number}")), now=NOW)

    assert len(limits._arrivals) <= 3


@pytest.mark.parametrize("reserved", [False, True])
def test_a_run_that_finds_no_room_costs_two_writes(limits: DynamoLimits, client: FaultyClient, reserved: bool) -> None:
    """Also if the slot is reserved for a job that has not come yet."""
    first = a_slot(ONE)
    limits.acquire(first, now=NOW)
    if reserved:
        state, turn = replace(limits.look(LINE), limit=ONE), Turn(reservation="+a", due=NOW)
        assert limits.reserve(LINE, state, [turn], leaving=run_name(first.token), now=NOW)
    writes = counting(client)

    assert limits.acquire(a_slot(ONE), now=NOW) == LINE
    assert len(writes) == 2


@pytest.mark.parametrize("meanwhile", [False, True], ids=["before", "meanwhile"])
def test_a_run_whose_line_a_later_one_has_listed_writes_no_mark_and_reads_nothing(
    limits: DynamoLimits, client: FaultyClient, table: Table, monkeypatch: pytest.MonkeyPatch, meanwhile: bool
) -> None:
    """Two workers find no room in the same millisecond: the order of their writes need not be that of their clocks."""
    limits.acquire(a_slot(ONE), now=NOW)
    later, writes = a_slot(ONE), []

    def list_line(done: bool) -> None:
        if not done:
            writes.append(True)
            if len(writes) == 1 + meanwhile:
                assert applied(table, limit_item.mark(later, LimitState(), now=NOW + MILLISECOND))

    client.watch = list_line
    with monkeypatch.context() as patch:
        patch.setattr(DynamoLimits, "look", None)
        assert limits.acquire(a_slot(ONE), now=NOW) == LINE

    assert len(writes) == 1 + meanwhile
    assert (limits.look(LINE).last, limits.look(LINE).last_at) == (later.job, NOW + MILLISECOND)


def test_a_released_job_gives_its_reservation_back_though_a_later_one_has_listed_the_line(
    limits: DynamoLimits, client: FaultyClient, table: Table
) -> None:
    stays, released = released_as_the_limit_is_lowered(limits)
    assert applied(table, limit_item.mark(a_slot(ONE), limits.look(LINE), now=NOW + SECOND))

    assert limits.acquire(released, now=NOW) == LINE
    assert set(limits.look(LINE).held or ()) == {run_name(stays.token)}


def test_a_run_whose_time_another_job_got_asks_for_the_next_one_without_a_read(
    limits: DynamoLimits, client: FaultyClient, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits.acquire(a_slot(PACED), now=NOW)
    writes: list[bool] = []

    def be_faster(done: bool) -> None:
        if not done:
            writes.append(True)
            if len(writes) == 2:
                request = limit_item.promise(a_slot(PACED), PACE, LimitState(), NOW + PACE.period, now=NOW)
                assert applied(table, request)

    client.watch = be_faster
    with monkeypatch.context() as patch:
        patch.setattr(DynamoLimits, "look", None)
        assert limits.acquire(a_slot(PACED), now=NOW) == NOW + 2 * PACE.period

    assert len(writes) == 3


def test_a_released_job_for_which_a_lowered_limit_has_no_room_gives_its_reservation_back_with_two_writes(
    limits: DynamoLimits, client: FaultyClient
) -> None:
    """It does not try again and again to enter with its reservation."""
    stays, released = released_as_the_limit_is_lowered(limits)
    writes = counting(client)

    assert limits.acquire(released, now=NOW) == LINE
    assert len(writes) == 2
    assert limits.acquire(released, now=NOW) == LINE
    assert set(limits.look(LINE).held or ()) == {run_name(stays.token)}


def test_a_run_tries_four_times_while_others_are_faster_and_then_waits(
    limits: DynamoLimits, client: FaultyClient, table: Table
) -> None:
    hundred = Limit(concurrency=100)
    other, writes = DynamoLimits(table.client, table=table.name), []

    def faster(done: bool) -> None:
        """The first write expects an item with slots, and each later one what the one before it found."""
        if done:
            return
        writes.append(True)
        if len(writes) % 2:
            table.client.delete_item(TableName=table.name, Key=limit_item.item_key(LINE))
        else:
            other.acquire(a_slot(hundred), now=NOW)

    client.watch = faster

    assert limits.acquire(a_slot(hundred), now=NOW) == LINE
    assert len(writes) == 5, "four entries and the mark"
    assert list(limits.lines()) == [LINE]
