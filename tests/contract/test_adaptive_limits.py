"""Adaptive concurrency in the limit item: the number bounds the slots, and changes with the writes of its runs."""

from typing import Any

import pytest

from tests.support.builders import LEASE, NOW, TENANT, fresh_token
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import Entered, LimitSlot
from tidemill.application.waiting.release import Releaser
from tidemill.domain.errors import OutdatedChangeError
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, ConcurrencyChange, RunSample, Trouble
from tidemill.domain.limits.limit_state import Turn, run_name
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits.limits import DynamoLimits

BOUNDS = Adaptive(floor=2, ceiling=4, target_seconds=1)
ADAPTIVE = Limit(adaptive=BOUNDS)
LINE = Line.for_limit('["test.job", "a"]')


def a_slot(limit: Limit = ADAPTIVE, **changes: Any) -> LimitSlot:
    token = fresh_token()
    slot = LimitSlot(line=LINE, token=token, until=NOW + LEASE, limit=limit, job=(TENANT, token))
    return replace(slot, **changes)


def entered(limits: DynamoLimits, slot: LimitSlot) -> Entered:
    answer = limits.acquire(slot, now=NOW)
    assert isinstance(answer, Entered)
    return answer


def measured(slot: LimitSlot, enter: Entered, *, seconds: float = 0.1) -> LimitSlot:
    assert enter.adapted is not None
    return replace(slot, sample=RunSample(entered=enter.adapted, taken=enter.taken, seconds=seconds))


def lowering(enter: Entered, to: float) -> ConcurrencyChange:
    assert enter.adapted is not None
    lowered = Adapted(allowed=to, falls=enter.adapted.falls + 1, fell_at=NOW, why=Trouble.SLOW)
    return ConcurrencyChange(lowered=lowered, sample=RunSample(entered=enter.adapted, taken=1, seconds=9))


def written(client: FaultyClient) -> list[bool]:
    """Gets an entry for each write from now on, refused or not."""
    writes: list[bool] = []
    client.watch = lambda applied: None if applied else writes.append(True)
    return writes


def test_a_limit_key_begins_at_the_floor(limits: DynamoLimits) -> None:
    answers = [limits.acquire(a_slot(), now=NOW) for _ in range(3)]

    assert answers == [
        Entered(adapted=Adapted(allowed=2), taken=1),
        Entered(adapted=Adapted(allowed=2), taken=2),
        LINE,
    ]


def test_a_good_run_makes_room_for_one_more(limits: DynamoLimits, releaser: Releaser) -> None:
    slot = a_slot()
    releaser.leave(measured(slot, entered(limits, slot)), line_stands=False)

    assert limits.look(LINE).adapted == Adapted(allowed=3)
    assert [isinstance(limits.acquire(a_slot(), now=NOW), Entered) for _ in range(4)] == [True, True, True, False]


def test_a_bad_run_takes_room_away_and_is_reported(limits: DynamoLimits, releaser: Releaser) -> None:
    slots = [a_slot(), a_slot()]
    first, second = (entered(limits, slot) for slot in slots)
    reported: list[ConcurrencyChange] = []
    releaser.leave(measured(slots[0], first), line_stands=False)
    slow = a_slot()
    releaser.leave(measured(slow, entered(limits, slow), seconds=2), line_stands=False, lowered=reported.append)

    (change,) = reported
    adapted = limits.look(LINE).adapted
    assert change.lowered is not None
    assert change.lowered.allowed == pytest.approx(3 * 0.7)
    assert adapted == Adapted(allowed=2.1, falls=1, fell_at=NOW, why=Trouble.SLOW)
    # It entered before the decrease, so its own slowness changes nothing.
    releaser.leave(measured(slots[1], second, seconds=2), line_stands=False, lowered=reported.append)
    assert (limits.look(LINE).adapted, len(reported), limits.look(LINE).held) == (adapted, 1, {})


def test_a_change_costs_no_write(limits: DynamoLimits, releaser: Releaser, client: FaultyClient) -> None:
    slot = a_slot()
    enter = entered(limits, slot)
    writes = written(client)

    releaser.leave(measured(slot, enter), line_stands=False)

    assert len(writes) == 1


def test_a_run_takes_one_write_to_enter_once_the_item_exists(limits: DynamoLimits, client: FaultyClient) -> None:
    entered(limits, a_slot())
    writes = written(client)

    entered(limits, a_slot())

    assert len(writes) == 1


@pytest.mark.parametrize("how", ["leave", "vacate", "reserve"])
def test_of_two_decreases_by_runs_that_entered_together_one_is_written(limits: DynamoLimits, how: str) -> None:
    slots = [a_slot(), a_slot()]
    first, second = (entered(limits, slot) for slot in slots)
    limits.release(slots[0], lowering(first, 1.5))
    name, change = run_name(slots[1].token), lowering(second, 1.2)

    if how == "reserve":
        state = replace(limits.look(LINE), limit=ADAPTIVE)
        turns = [Turn(reservation="+a", due=NOW)]
        assert not limits.reserve(LINE, state, turns, leaving=name, now=NOW, change=change)
    else:
        with pytest.raises(OutdatedChangeError):
            limits.release(slots[1], change) if how == "leave" else limits.vacate(LINE, name, change)

    state = limits.look(LINE)
    assert state.adapted == lowering(first, 1.5).lowered
    assert set(state.held or ()) == {name}, "the slot is not given back without its change"


def test_a_leaving_run_hands_its_slot_over_and_changes_the_number_in_one_write(
    limits: DynamoLimits, client: FaultyClient
) -> None:
    slot = a_slot()
    enter = entered(limits, slot)
    state = replace(limits.look(LINE), limit=ADAPTIVE)
    change = ConcurrencyChange(
        step=1, sample=RunSample(entered=enter.adapted or Adapted(allowed=2), taken=1, seconds=0)
    )
    turns = [Turn(reservation="+a", due=NOW), Turn(reservation="+b", due=NOW), Turn(reservation="+c", due=NOW)]
    writes = written(client)

    assert limits.reserve(LINE, state, turns, leaving=run_name(slot.token), now=NOW, change=change)

    assert len(writes) == 1
    after = limits.look(LINE)
    assert (after.adapted, set(after.held or ())) == (Adapted(allowed=3), {"+a", "+b", "+c"})


def test_a_release_reserves_no_more_than_the_number(limits: DynamoLimits) -> None:
    entered(limits, a_slot())
    state = replace(limits.look(LINE), limit=ADAPTIVE)

    assert not limits.reserve(
        LINE, state, [Turn(reservation="+a", due=NOW), Turn(reservation="+b", due=NOW)], leaving=None, now=NOW
    )
    assert limits.reserve(LINE, state, [Turn(reservation="+a", due=NOW)], leaving=None, now=NOW)


def test_a_release_that_read_the_number_before_a_decrease_looks_again(limits: DynamoLimits) -> None:
    slot = a_slot()
    enter = entered(limits, slot)
    state = replace(limits.look(LINE), limit=ADAPTIVE)
    limits.release(slot, lowering(enter, 1))

    assert not limits.reserve(LINE, state, [Turn(reservation="+a", due=NOW)], leaving=None, now=NOW)


def test_a_released_job_keeps_the_slot_that_was_reserved_before_a_decrease(limits: DynamoLimits) -> None:
    bounds = Limit(adaptive=replace(BOUNDS, floor=1))
    slots = [a_slot(), a_slot()]
    enter, _ = (entered(limits, slot) for slot in slots)
    mine = a_slot(bounds, released=True)
    state = replace(limits.look(LINE), limit=ADAPTIVE)
    turn = Turn(reservation=mine.reservation, due=NOW)
    assert limits.reserve(LINE, state, [turn], leaving=run_name(slots[1].token), now=NOW, change=lowering(enter, 1))

    answer = limits.acquire(mine, now=NOW)

    assert isinstance(answer, Entered)
    assert answer.taken == 2
    assert limits.acquire(a_slot(bounds), now=NOW) == LINE


def test_a_limit_that_was_fixed_before_adapts_from_its_next_run_on(limits: DynamoLimits) -> None:
    fixed = a_slot(Limit(concurrency=2))
    limits.acquire(fixed, now=NOW)

    assert entered(limits, a_slot()).adapted == Adapted(allowed=2)
    assert limits.acquire(a_slot(), now=NOW) == LINE
    limits.vacate(LINE, run_name(fixed.token))
    assert isinstance(limits.acquire(a_slot(), now=NOW), Entered)


def test_an_override_fixes_the_concurrency(limits: DynamoLimits) -> None:
    slot = a_slot()
    limits.release(slot, lowering(entered(limits, slot), 1))

    answers = [limits.acquire(a_slot(Limit(concurrency=3)), now=NOW) for _ in range(4)]

    assert answers == [Entered(), Entered(), Entered(), LINE]


def test_bounds_that_were_raised_and_lowered_since_hold_at_once(limits: DynamoLimits) -> None:
    higher = Limit(adaptive=replace(BOUNDS, floor=3))
    lower = Limit(adaptive=replace(BOUNDS, floor=1, ceiling=1))
    entered(limits, a_slot())

    assert limits.acquire(a_slot(lower), now=NOW) == LINE
    assert [isinstance(limits.acquire(a_slot(higher), now=NOW), Entered) for _ in range(3)] == [True, True, False]


def test_wake_reads_bounds_and_number_from_the_item(limits: DynamoLimits, table: Table) -> None:
    for _ in range(3):
        limits.acquire(a_slot(), now=NOW)

    state = limits.look(LINE)

    assert state.limit == ADAPTIVE
    assert state.adapted == Adapted(allowed=2)
    (item,) = table.client.scan(TableName=table.name)["Items"]
    assert item["slots"] == {"N": "2"}, "for a version that knows no adaptive limit"


def test_a_cause_of_a_newer_version_is_read_as_unknown(limits: DynamoLimits, table: Table) -> None:
    slot = a_slot()
    limits.release(slot, lowering(entered(limits, slot), 1))
    (item,) = table.client.scan(TableName=table.name)["Items"]
    table.client.put_item(TableName=table.name, Item={**item, "fell_why": {"S": "tired"}})

    adapted = limits.look(LINE).adapted

    assert adapted is not None
    assert (adapted.falls, adapted.why) == (1, None)


def test_an_answer_that_the_sdk_lost_gives_the_number_too(limits: DynamoLimits) -> None:
    slot = a_slot()
    first = entered(limits, slot)

    assert entered(limits, slot) == first


@pytest.mark.parametrize(("before", "writes"), [(Limit(concurrency=1), 2), (ADAPTIVE, 1)], ids=["fixed", "adaptive"])
def test_a_released_job_begins_the_number_of_an_item_that_has_none(
    limits: DynamoLimits, client: FaultyClient, before: Limit, writes: int
) -> None:
    """Its first try expects a number, as most items have one."""
    leaving, mine = a_slot(before), a_slot()
    limits.acquire(leaving, now=NOW)
    state, turn = replace(limits.look(LINE), limit=before), Turn(reservation=mine.reservation, due=NOW)
    assert limits.reserve(LINE, state, [turn], leaving=run_name(leaving.token), now=NOW)
    sent = written(client)

    answer = limits.acquire(replace(mine, released=True), now=NOW)

    assert answer == Entered(adapted=Adapted(allowed=2), taken=1)
    assert len(sent) == writes
    assert limits.look(LINE).adapted == Adapted(allowed=2)
