"""Each write of a limit item on a state that another write has changed since: refused, or without harm."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import LEASE, MILLISECOND, NOW, SECOND, TENANT, fresh_token
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.limits.limit_state import RESERVED, LimitState, Turn, run_name
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits import limit_item
from tidemill.dynamodb.limits.limits import DynamoLimits, _RefusedError
from tidemill.dynamodb.update_requests import Request

ONE = Limit(concurrency=1)
TWO = Limit(concurrency=2)
PACE = Rate(count=1, period=timedelta(minutes=1))
PACED = Limit(rate=PACE)
TWO_PACED = Limit(concurrency=2, rate=PACE)
LINE = Line.for_limit("test.job#a")
LATER = NOW + LEASE


@pytest.fixture
def limits(client: FaultyClient, table: Table) -> DynamoLimits:
    return DynamoLimits(client, table=table.name)  # type: ignore[arg-type]  # a proxy


def a_slot(limit: Limit, **changes: Any) -> LimitSlot:
    token = fresh_token()
    return replace(LimitSlot(line=LINE, token=token, until=NOW + LEASE, limit=limit, job=(TENANT, token)), **changes)


def applied(table: Table, request: Request | None) -> bool:
    """Whether the condition of the request held."""
    assert request is not None
    try:
        table.client.update_item(TableName=table.name, **request)
    except table.client.exceptions.ConditionalCheckFailedException:
        return False
    return True


def both(table: Table, state: LimitState, request: Callable[[LimitState], Request | None]) -> list[bool]:
    """Whether each of two writes that read the same state is applied."""
    first, second = request(state), request(state)
    return [applied(table, first), applied(table, second)]


@pytest.mark.parametrize("limit", [ONE, PACED, TWO_PACED], ids=["slots", "rate", "both"])
def test_of_two_first_runs_one_enters(table: Table, limit: Limit) -> None:
    seen = LimitState(held=None)

    assert both(table, seen, lambda state: limit_item.enter(a_slot(limit), state, now=NOW)) == [True, False]


def test_of_two_runs_that_replace_a_slot_whose_time_is_over_one_enters(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(ONE), now=NOW)
    enter = lambda state: limit_item.enter(a_slot(ONE, until=LATER + LEASE), state, now=LATER)  # noqa: E731

    assert both(table, limits.look(LINE), enter) == [True, False]
    assert len(limits.look(LINE).held or ()) == 1


@pytest.mark.parametrize(("others", "enters"), [(1, True), (2, False)])
def test_a_slot_whose_time_is_over_makes_room_for_one_run(
    limits: DynamoLimits, table: Table, others: int, enters: bool
) -> None:
    """The others do not know it, and some of them still have the higher limit of before."""
    higher, lower = Limit(concurrency=4), Limit(concurrency=3)
    for until in (NOW + SECOND, LATER):
        limits.acquire(a_slot(higher, until=until), now=NOW)
    seen = limits.look(LINE)
    for _ in range(others):
        assert isinstance(limits.acquire(a_slot(higher), now=NOW + 2 * SECOND), Entered)

    assert applied(table, limit_item.enter(a_slot(lower), seen, now=NOW + 2 * SECOND)) is enters


def test_of_two_released_jobs_that_use_one_reservation_one_enters(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(ONE), now=NOW)
    limits.acquire(a_slot(ONE), now=NOW)
    held = next(iter(limits.look(LINE).held or ()))
    limits.reserve(LINE, limits.look(LINE), [Turn(reservation="+a", due=NOW)], leaving=held, now=NOW)
    enter = lambda state: limit_item.enter(a_slot(ONE, released=True), state, now=NOW)  # noqa: E731

    assert both(table, limits.look(LINE), enter) == [True, False]


def test_the_last_slot_is_given_once(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(TWO), now=NOW)

    assert both(table, limits.look(LINE), lambda state: limit_item.enter(a_slot(TWO), state, now=NOW)) == [True, False]


def test_an_entry_does_not_measure_an_item_that_has_expired_since(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(TWO), now=NOW)
    seen = limits.look(LINE)
    table.client.delete_item(TableName=table.name, Key=limit_item.item_key(LINE))

    assert not applied(table, limit_item.enter(a_slot(TWO), seen, now=NOW))
    assert isinstance(limits.acquire(a_slot(TWO), now=NOW), Entered)


def test_a_run_does_not_start_on_an_arrival_time_that_has_moved_on(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(PACED), now=NOW)
    later = NOW + PACE.period
    enter = lambda state: limit_item.enter(a_slot(PACED), state, now=later)  # noqa: E731

    assert both(table, limits.look(LINE), enter) == [True, False]


@pytest.mark.parametrize("promised", [timedelta(0), timedelta(days=1)])
def test_of_two_runs_that_find_the_times_of_a_former_rate_one_enters(
    limits: DynamoLimits, table: Table, promised: timedelta
) -> None:
    limits.acquire(a_slot(Limit(rate=Rate(count=1, period=timedelta(days=1)))), now=NOW)
    seen = limits.look(LINE)
    if promised:
        assert applied(table, limit_item.promise(a_slot(PACED), PACE, seen, NOW + promised, now=NOW))
        seen = limits.look(LINE)

    assert both(table, seen, lambda state: limit_item.enter(a_slot(PACED), state, now=NOW + SECOND)) == [True, False]


def test_a_burst_that_two_runs_use_up_counts_both(limits: DynamoLimits, table: Table) -> None:
    burst = Limit(rate=Rate(count=3, period=timedelta(minutes=1)))
    limits.acquire(a_slot(burst), now=NOW)
    seen = limits.look(LINE)
    requests = [limit_item.enter(a_slot(burst), seen, now=NOW) for _ in range(3)]

    assert [applied(table, request) for request in requests] == [True, True, False]
    assert limits.look(LINE).arrival == NOW + timedelta(minutes=1)


def test_a_newcomer_does_not_start_at_a_time_that_was_promised_since(limits: DynamoLimits, table: Table) -> None:
    seen = LimitState(held=None)
    assert applied(table, limit_item.promise(a_slot(PACED), PACE, seen, NOW, now=NOW))

    assert not applied(table, limit_item.enter(a_slot(PACED), seen, now=NOW + PACE.period - MILLISECOND))
    assert applied(table, limit_item.enter(a_slot(PACED), seen, now=NOW + PACE.period))


@pytest.mark.parametrize("known", [False, True], ids=["the first", "the next"])
def test_a_time_is_promised_once(limits: DynamoLimits, table: Table, known: bool) -> None:
    if known:
        assert applied(table, limit_item.promise(a_slot(PACED), PACE, limits.look(LINE), NOW, now=NOW))
    at = NOW + PACE.period

    promise = lambda state: limit_item.promise(a_slot(PACED), PACE, state, at, now=NOW)  # noqa: E731
    assert both(table, limits.look(LINE), promise) == [True, False]
    assert limits.look(LINE).promised == at + PACE.period


def test_a_release_promises_the_times_that_it_gives_once(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(PACED), now=NOW)
    applied(table, limit_item.mark(a_slot(PACED), limits.look(LINE), now=NOW))
    turns = [Turn(reservation=f"+{number}", due=NOW + number * PACE.period) for number in (1, 2)]

    reserve = lambda state: limit_item.reserve(LINE, state, turns, leaving=None, now=NOW)  # noqa: E731
    assert both(table, limits.look(LINE), reserve) == [True, False]
    assert limits.look(LINE).promised == NOW + 3 * PACE.period


def test_a_release_reserves_each_slot_until_a_minute_after_its_turn(limits: DynamoLimits) -> None:
    limits.acquire(a_slot(TWO), now=NOW)
    limits.acquire(a_slot(TWO), now=NOW)
    limits.acquire(a_slot(TWO), now=NOW)
    leaving = next(iter(limits.look(LINE).held or ()))

    assert limits.reserve(LINE, limits.look(LINE), [Turn(reservation="+a", due=LATER)], leaving=leaving, now=NOW)

    held = limits.look(LINE).held or {}
    assert (held["+a"], leaving in held, len(held)) == (LATER + RESERVED, False, 2)


def test_nothing_is_written_for_turns_that_were_reserved_before(limits: DynamoLimits) -> None:
    limits.acquire(a_slot(ONE), now=NOW)
    limits.acquire(a_slot(ONE), now=NOW)
    state = limits.look(LINE)

    assert (
        limit_item.reserve(LINE, state, [Turn(reservation="+a", due=NOW, reserved=True)], leaving=None, now=NOW) is None
    )
    assert limit_item.reserve(LINE, LimitState(), [Turn(reservation="+a", due=NOW)], leaving=None, now=NOW) is None
    assert limits.reserve(LINE, state, [], leaving=None, now=NOW)


def test_a_later_mark_stays(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(ONE), now=NOW)
    seen = limits.look(LINE)
    assert applied(table, limit_item.mark(a_slot(ONE), seen, now=NOW + SECOND))

    assert not applied(table, limit_item.mark(a_slot(ONE), seen, now=NOW))
    assert applied(table, limit_item.mark(a_slot(ONE), limits.look(LINE), now=NOW + SECOND))


def test_a_mark_does_not_rely_on_one_that_wake_has_taken_away(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(ONE), now=NOW)
    limits.acquire(a_slot(ONE), now=NOW)
    seen = limits.look(LINE)
    limits.clear(LINE, seen)

    assert not applied(table, limit_item.mark(a_slot(ONE), seen, now=NOW + SECOND))
    assert list(limits.lines()) == []


def test_a_mark_leaves_the_line_where_it_is_and_names_the_last_job(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(ONE), now=NOW)
    limits.acquire(a_slot(ONE), now=NOW)
    first = table.client.get_item(TableName=table.name, Key=limit_item.item_key(LINE))["Item"]
    last = a_slot(TWO_PACED, job=(f"{TENANT}#b", "last"))

    assert applied(table, limit_item.mark(last, limits.look(LINE), now=NOW + SECOND))

    item = table.client.get_item(TableName=table.name, Key=limit_item.item_key(LINE))["Item"]
    assert (item["attention"], item["attention_at"]) == (first["attention"], first["attention_at"])
    state = limits.look(LINE)
    assert (state.last, state.last_at, state.limit) == (last.job, NOW + SECOND, TWO_PACED)
    assert applied(table, limit_item.mark(a_slot(ONE), state, now=NOW + SECOND))
    assert limits.look(LINE).limit == ONE


def test_a_cleared_line_leaves_no_trace(limits: DynamoLimits, table: Table) -> None:
    limits.acquire(a_slot(ONE), now=NOW)
    limits.acquire(a_slot(ONE), now=NOW)

    limits.clear(LINE, limits.look(LINE))

    item = table.client.get_item(TableName=table.name, Key=limit_item.item_key(LINE))["Item"]
    assert not {"attention", "attention_at", "last", "last_at"} & item.keys()


@pytest.mark.parametrize("limit", [ONE, PACED, TWO_PACED], ids=["slots", "rate", "both"])
def test_every_write_but_a_leave_puts_the_expiry_off(table: Table, limit: Limit) -> None:
    state, later = LimitState(held=None), NOW + timedelta(days=1)
    writes = [limit_item.enter(a_slot(limit), state, now=NOW), limit_item.mark(a_slot(limit), state, now=NOW)]
    if limit.rate:
        writes.append(limit_item.promise(a_slot(limit), limit.rate, state, NOW, now=NOW))
    marked = replace(state, limit=limit, held={} if limit.concurrency else None)
    turns = [Turn(reservation="+a", due=later)]
    writes.append(limit_item.reserve(LINE, marked, turns, leaving=None, now=NOW) or {})

    in_two_days = (NOW + timedelta(days=2)).replace(microsecond=0) + SECOND
    expiries = [write["ExpressionAttributeValues"][":new_expires_at"]["N"] for write in writes]
    assert expiries == [str(int(in_two_days.timestamp()))] * len(writes)


def test_a_slot_of_another_run_is_never_left(limits: DynamoLimits) -> None:
    mine, other = a_slot(TWO), a_slot(TWO)
    limits.acquire(mine, now=NOW)
    limits.acquire(other, now=NOW)
    limits.acquire(a_slot(TWO), now=NOW)

    assert not limits.release(a_slot(TWO)), "a run that never entered hands nothing over"
    assert limits.release(mine)
    limits.vacate(LINE, run_name(mine.token))
    assert not limits.release(mine), "its slot is gone"
    assert set(limits.look(LINE).held or ()) == {run_name(other.token)}


def test_a_job_that_no_try_let_in_is_in_a_line_that_wake_knows(
    limits: DynamoLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others were faster four times. Before the fifth write, wake clears the mark that the job has seen."""
    long_ago = NOW - timedelta(minutes=30)
    limits.acquire(a_slot(ONE), now=long_ago)
    assert limits.acquire(a_slot(ONE), now=long_ago) == LINE
    seen = limits.look(LINE)
    update = DynamoLimits._update
    writes = iter(range(9))

    def contended(store: DynamoLimits, request: Request) -> LimitState:
        number = next(writes)
        if number < 4:
            raise _RefusedError(seen)
        if number == 4:
            update(store, limit_item.clear(LINE, seen))
        return update(store, request)

    monkeypatch.setattr(DynamoLimits, "_update", contended)
    assert limits.acquire(a_slot(ONE), now=NOW) == LINE

    state = limits.look(LINE)
    assert (state.marked, state.last_at) == (True, NOW)
