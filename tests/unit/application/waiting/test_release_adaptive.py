"""How a leaving run changes the number of an adaptive limit, over a limit item and an index in memory."""

from typing import Final

import pytest

from tests.support.builders import NOW, SECOND
from tests.unit.application.waiting.test_release import LINE, World, parked
from tidemill.application.ports import LimitSlot
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, ConcurrencyChange, RunSample
from tidemill.domain.limits.limit_state import run_name
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace

ADAPTIVE: Final = Limit(adaptive=Adaptive(floor=1, ceiling=9, target_seconds=1))
TOKEN: Final = "token"
#: The number when the run entered.
TWO_ALLOWED: Final = Adapted(allowed=2, falls=1)


def an_adaptive_slot(*, seconds: float) -> LimitSlot:
    return LimitSlot(
        line=LINE,
        limit=ADAPTIVE,
        token=TOKEN,
        until=NOW,
        job=("tenant", "id"),
        sample=RunSample(entered=TWO_ALLOWED, taken=2, seconds=seconds),
    )


def crowded(world: World, jobs: int) -> None:
    world.shown = [parked(created_at=NOW + number * SECOND) for number in range(jobs)]
    held = {run_name(TOKEN): NOW + SECOND, "another": NOW + SECOND}
    world.state = replace(world.state, held=held, limit=ADAPTIVE, adapted=TWO_ALLOWED)


@pytest.fixture
def world() -> World:
    return World()


def test_a_good_run_of_an_adaptive_limit_releases_a_job_into_the_room_that_it_makes(world: World) -> None:
    crowded(world, 3)

    world.releaser.leave(an_adaptive_slot(seconds=0.5), line_stands=True)

    ((turns, _, change),) = world.called("reserve")
    assert (len(turns), change.step) == (2, 0.5)


def test_a_bad_run_of_an_adaptive_limit_hands_no_slot_over(world: World) -> None:
    crowded(world, 3)
    world.state = replace(world.state, held={**(world.state.held or {}), "third": NOW + SECOND})
    reported: list[ConcurrencyChange] = []
    slot = an_adaptive_slot(seconds=5)

    world.releaser.leave(slot, line_stands=True, lowered=reported.append)

    assert world.called("reserve") == []
    ((name, change),) = world.called("vacate")
    assert (name, reported) == (run_name(TOKEN), [change])
    assert change.lowered.allowed == pytest.approx(1.4)


def test_a_bad_run_tells_the_decrease_that_goes_with_a_hand_over(world: World) -> None:
    crowded(world, 3)
    world.state = replace(world.state, held={run_name(TOKEN): NOW + SECOND})
    reported: list[ConcurrencyChange] = []

    world.releaser.leave(an_adaptive_slot(seconds=5), line_stands=True, lowered=reported.append)

    ((turns, leaving, change),) = world.called("reserve")
    # 1.4 are rounded up.
    assert (len(turns), leaving, reported) == (2, run_name(TOKEN), [change])


@pytest.mark.parametrize("seconds", [0.5, 5])
def test_a_run_whose_slot_was_given_back_already_changes_nothing(world: World, seconds: float) -> None:
    crowded(world, 1)
    world.state = replace(world.state, held={})
    reported: list[ConcurrencyChange] = []

    world.releaser.leave(an_adaptive_slot(seconds=seconds), line_stands=True, lowered=reported.append)

    (call,) = world.called("reserve")
    assert (len(call), reported) == (2, [])


@pytest.mark.parametrize("limit", [None, Limit(concurrency=3)])
def test_a_run_of_a_limit_that_adapts_no_more_hands_its_slot_over(world: World, limit: Limit | None) -> None:
    crowded(world, 1)
    world.state = replace(world.state, limit=limit)
    waiting = world.shown[0]

    released = world.releaser.release(LINE, leaving=run_name(TOKEN), sample=an_adaptive_slot(seconds=5).sample)

    assert released == [waiting]
    assert [call[1:] for call in world.called("reserve")] == [(run_name(TOKEN),)]


@pytest.mark.parametrize("line_stands", [True, False])
def test_a_change_that_no_longer_applies_does_not_keep_the_slot(world: World, *, line_stands: bool) -> None:
    crowded(world, 0)
    world.state, world.outdated = replace(world.state, marked=False), True
    world.frees = False
    reported: list[ConcurrencyChange] = []

    world.releaser.leave(an_adaptive_slot(seconds=5), line_stands=line_stands, lowered=reported.append)

    name = run_name(TOKEN)
    last = world.called("vacate" if line_stands else "release")[-1]
    assert last == ((name,) if line_stands else (an_adaptive_slot(seconds=5),))
    assert reported == []
