"""Release, step by step: what it reads, reserves, releases and gives back, over a limit item and an index in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from tests.support.builders import A_WAIT, NOW, SECOND, a_job, with_changes
from tests.support.single_job import Clock
from tidemill.application.ports import LimitSlot, Unreadable, ignore_unreadable
from tidemill.application.waiting.release import LISTED_AT_LEAST, Releaser
from tidemill.domain.errors import (
    MalformedDocumentError,
    NewerSchemaError,
    OutdatedChangeError,
    StoreUnavailableError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.limits.adaptive_limit import ConcurrencyChange
from tidemill.domain.limits.limit_state import MOST_AT_ONCE, RESERVED, LimitState, Turn, reservation_name, run_name
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write
from tidemill.domain.waiting.waiting import Line

LINE: Final = A_WAIT.line
TAKEN: Final = {"run": NOW + SECOND}
MOST_TRIES: Final = 4


def parked(**changes: Any) -> Job:
    return a_job(**{"state": State.PARKED, "wait": A_WAIT, **changes})


def name_of(job: Job) -> str:
    return reservation_name(job.tenant, job.id)


@dataclass
class World:
    """The limit item of one line, its parked jobs, and the calls of the releaser."""

    state: LimitState = field(default_factory=lambda: LimitState(limit=Limit(concurrency=1), held={}, marked=True))
    shown: list[Job] = field(default_factory=list)
    hidden: list[Job | Exception] = field(default_factory=list)
    #: The ids of those that only a newer version can read.
    unread: list[str] = field(default_factory=list)
    #: What a write of the limit item answers, and what an unpark raises: one each, then all succeed.
    reserves: list[bool] = field(default_factory=list)
    refusals: list[Exception] = field(default_factory=list)
    error: Exception | None = None
    frees: bool = True
    #: Whether another run has lowered the adaptive concurrency since.
    outdated: bool = False
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    line: Line = LINE

    @property
    def releaser(self) -> Releaser:
        return Releaser(store=self, limits=self, clock=self.clock)  # type: ignore[arg-type]  # the parts that it uses

    def called(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]

    def look(self, line: Line) -> LimitState:
        self.calls.append(("look", line))
        if self.error:
            raise self.error
        return self.state

    def reserve(
        self, line: Line, state: LimitState, turns: Sequence[Turn], *, leaving: str | None, now: datetime, change: Any
    ) -> bool:
        assert (line, state.held, now) == (self.line, self.state.held, self.clock.now)
        self.calls.append(("reserve", list(turns), leaving, *([change] if change else [])))
        if self.reserves and not self.reserves.pop(0):
            return False
        held = {name: until for name, until in (self.state.held or {}).items() if name != leaving}
        self.state = replace(self.state, held=held | {turn.reservation: turn.due + RESERVED for turn in turns})
        return True

    def vacate(self, _line: Line, name: str, change: ConcurrencyChange | None = None) -> None:
        self.calls.append(("vacate", name, *([change] if change else [])))
        if change and self.outdated:
            raise OutdatedChangeError
        self.state = replace(self.state, held={key: end for key, end in (self.state.held or {}).items() if key != name})

    def clear(self, line: Line, _state: LimitState) -> None:
        self.calls.append(("clear", line))

    def release(self, slot: LimitSlot, change: ConcurrencyChange | None = None) -> bool:
        self.calls.append(("release", slot, *([change] if change else [])))
        if change and self.outdated:
            raise OutdatedChangeError
        return self.frees

    def parked(self, line: Line, *, most: int, unreadable: Unreadable = ignore_unreadable) -> list[Job]:
        self.calls.append(("parked", line, most))
        for job_id in self.unread:
            unreadable("tenant", job_id, NewerSchemaError("document", 9, 3))
        return self.shown[:most]

    def get(self, _tenant: str, job_id: str) -> Job | None:
        self.calls.append(("get", job_id))
        for one in self.hidden:
            if isinstance(one, Exception):
                raise one
            if one.id == job_id:
                return one
        return None

    def unpark(self, job: Job, *, now: datetime, due: datetime) -> None:
        if self.refusals:
            refusal = self.refusals.pop(0)
            self.shown = [one for one in self.shown if one != job]
            raise refusal
        self.calls.append(("unpark", job, due))
        self.shown = [one for one in self.shown if one != job]


@pytest.fixture
def world() -> World:
    return World()


def test_a_leaving_run_hands_its_slot_to_the_first_job_in_one_write(world: World) -> None:
    first, second = parked(), parked(created_at=NOW + SECOND)
    world.state = replace(world.state, held=TAKEN)
    world.shown = [first, second]

    assert world.releaser.release(LINE, leaving="run") == [first]
    assert world.called("reserve") == [([Turn(reservation=name_of(first), due=NOW)], "run")]
    assert world.called("unpark") == [(first, NOW)]
    assert world.called("vacate") == []


def test_jobs_of_the_same_time_start_in_the_order_of_their_ids(world: World) -> None:
    jobs = [parked(id=name) for name in "cab"]
    world.state = replace(world.state, limit=Limit(concurrency=3))
    world.shown = jobs

    assert [job.id for job in world.releaser.release(LINE)] == ["a", "b", "c"]


def test_a_slot_that_is_given_back_already_is_not_given_back_again(world: World) -> None:
    world.shown = [parked()]

    assert len(world.releaser.release(LINE, leaving="run")) == 1
    assert world.called("reserve")[0][1] is None
    assert world.called("vacate") == []


@pytest.mark.parametrize("held", [None, TAKEN])
def test_a_line_without_a_mark_is_not_searched_and_the_slot_is_free(world: World, held: Any) -> None:
    world.state = replace(world.state, marked=False, held=held)

    assert world.releaser.release(LINE, leaving="run") == []
    assert (world.called("parked"), world.called("reserve"), world.called("clear")) == ([], [], [])
    assert world.called("vacate") == [("run",)] * (held is not None)


@pytest.mark.parametrize(
    ("held", "concurrency", "most"),
    [
        ({}, 2, 2),
        (TAKEN, 2, 1),
        ({**TAKEN, "+a": NOW + SECOND}, 2, 1),
        ({"+a": NOW + SECOND, "+b": NOW}, 3, 4),
        ({}, 100, MOST_AT_ONCE),
        ({"+a": NOW + SECOND}, 100, MOST_AT_ONCE),
    ],
)
def test_as_many_jobs_are_read_as_have_a_turn_or_may_have_a_reservation(
    world: World, held: dict[str, datetime], concurrency: int, most: int
) -> None:
    world.state = replace(world.state, held=held, limit=Limit(concurrency=concurrency))

    world.releaser.release(LINE)

    assert world.called("parked") == [(LINE, most)]


def test_a_full_limit_is_not_searched(world: World) -> None:
    world.state = replace(world.state, held=TAKEN)
    world.shown = [parked()]

    assert world.releaser.release(LINE) == []
    assert [call[0] for call in world.calls] == ["look"]


@pytest.mark.parametrize(
    ("marked_before", "named", "concurrency", "cleared"),
    [
        (LISTED_AT_LEAST + SECOND, None, 2, True),
        (LISTED_AT_LEAST, None, 2, False),
        (LISTED_AT_LEAST + SECOND, parked(wait=None), 2, False),
        (LISTED_AT_LEAST + SECOND, None, 1, False),
    ],
)
def test_the_mark_of_an_empty_line_stays_until_no_worker_can_be_about_to_park(
    world: World, marked_before: timedelta, named: Job | None, concurrency: int, *, cleared: bool
) -> None:
    limit = Limit(concurrency=concurrency)
    world.state = replace(world.state, held=TAKEN, limit=limit, last_at=NOW - marked_before)

    assert world.releaser.release(LINE, parked=named) == []
    assert bool(world.called("clear")) is cleared
    assert timedelta(minutes=20) == LISTED_AT_LEAST


@pytest.mark.parametrize("by_index", [True, False])
def test_the_mark_stays_while_a_job_of_a_newer_version_is_in_the_line(world: World, *, by_index: bool) -> None:
    world.state = replace(world.state, last_at=NOW - LISTED_AT_LEAST - SECOND)
    if by_index:
        world.unread = ["j"]
    else:
        world.state = replace(world.state, last=("tenant", "j"))
        world.hidden = [NewerSchemaError("document", 9, 3)]

    assert world.releaser.release(LINE) == []
    assert world.called("clear") == []


def test_the_limit_that_a_caller_knows_counts_instead_of_that_of_the_item(world: World) -> None:
    world.state = replace(world.state, held=TAKEN)
    world.shown = [parked()]

    assert len(world.releaser.release(LINE, limit=Limit(concurrency=2))) == 1


def test_a_release_that_others_overtake_looks_again_some_times_and_then_frees_the_slot(world: World) -> None:
    world.state = replace(world.state, held=TAKEN)
    world.shown = [parked()]
    world.reserves = [False] * MOST_TRIES

    assert world.releaser.release(LINE, leaving="run") == []
    assert len(world.called("look")) == MOST_TRIES
    assert world.calls[-1] == ("vacate", "run")


@pytest.mark.parametrize(
    ("changes", "comes"),
    [
        ({"state": State.QUEUED, "generation": 2}, True),
        ({"state": State.RUNNING, "generation": 2}, True),
        ({"state": State.CANCELLED, "generation": 2}, False),
        ({"state": State.QUEUED, "generation": 3}, False),
        (None, False),
    ],
)
def test_the_slot_of_a_job_that_will_not_come_goes_to_the_next(
    world: World, changes: dict[str, Any] | None, *, comes: bool
) -> None:
    first, second = parked(), parked(created_at=NOW + SECOND)
    world.shown = [first, second]
    world.refusals = [WriteRefusedError(Write.UNPARK, None if changes is None else with_changes(first, **changes))]

    released = world.releaser.release(LINE)

    assert released == ([] if comes else [second])
    assert world.called("vacate") == ([] if comes else [(name_of(first),)])


def test_a_reservation_of_an_interrupted_release_is_used_and_the_leaving_slot_is_freed_first(world: World) -> None:
    job = parked()
    world.state = replace(world.state, limit=Limit(concurrency=2), held={**TAKEN, name_of(job): NOW + 9 * SECOND})
    world.shown = [job]

    assert world.releaser.release(LINE, leaving="run") == [job]
    due = NOW + 9 * SECOND - RESERVED
    assert world.called("reserve") == [([Turn(reservation=name_of(job), due=due, reserved=True)], None)]
    assert [call[0] for call in world.calls].index("vacate") < [call[0] for call in world.calls].index("reserve")
    assert (world.called("vacate"), len(world.called("look"))) == ([("run",)], 2)


def test_a_reserved_turn_uses_up_no_free_time(world: World) -> None:
    reserved, next_, third = (parked(created_at=NOW + number * SECOND) for number in range(3))
    world.state = replace(world.state, limit=Limit(concurrency=2), held={name_of(reserved): NOW + RESERVED})
    world.shown = [reserved, next_, third]

    assert world.releaser.release(LINE) == [reserved, next_]


def test_a_job_that_was_just_parked_is_found_beside_the_index(world: World) -> None:
    late, early = parked(created_at=NOW + SECOND), parked()
    world.state = replace(world.state, limit=Limit(concurrency=2))
    world.shown, world.hidden = [late], [early]

    assert world.releaser.release(LINE, parked=early) == [early, late]
    world.shown, world.hidden, world.state = [late], [late], replace(world.state, held={})
    world.calls.clear()
    assert world.releaser.release(LINE, parked=late) == [late]
    assert world.called("get") == []


@pytest.mark.parametrize(
    "found",
    [
        parked(id="j", state=State.QUEUED),
        parked(id="j", wait=None),
        parked(id="j", wait=replace(A_WAIT, key="another")),
        MalformedDocumentError("newer"),
        parked(id="another"),
    ],
)
def test_a_named_job_that_is_not_parked_in_the_line_is_left_alone(world: World, found: Job | Exception) -> None:
    world.hidden = [found]
    world.state = replace(world.state, last=(a_job().tenant, "j"))

    assert world.releaser.release(LINE) == []
    assert world.called("get") == [("j",)]
    assert world.called("reserve") == []


def test_the_last_job_that_found_no_room_is_read_only_if_the_index_shows_none(world: World) -> None:
    last, shown = parked(), parked(created_at=NOW + SECOND)
    world.state = replace(world.state, last=(last.tenant, last.id))
    world.hidden = [last]

    assert world.releaser.release(LINE) == [last]
    world.state, world.shown = replace(world.state, held={}), [shown]
    world.calls.clear()
    assert world.releaser.release(LINE) == [shown]
    assert world.called("get") == []


SLOT: Final = LimitSlot(line=LINE, limit=Limit(concurrency=2), token="token", until=NOW, job=("tenant", "id"))


def test_a_run_that_leaves_a_line_that_stands_hands_its_slot_on(world: World) -> None:
    world.state = replace(world.state, held={run_name("token"): NOW + SECOND, "b": NOW + SECOND})
    world.shown = [parked()]

    world.releaser.leave(SLOT, line_stands=True)

    assert world.called("release") == []
    assert world.called("reserve")[0][1] == run_name("token"), "by the limit of the slot, one of two is free"


@pytest.mark.parametrize("stands", [True, False])
def test_a_run_that_saw_no_line_frees_its_slot_and_looks_only_if_there_is_one_now(
    world: World, *, stands: bool
) -> None:
    world.frees = stands

    world.releaser.leave(SLOT, line_stands=False)

    assert world.called("release") == [(SLOT,)]
    assert bool(world.called("look")) is stands


def test_a_job_that_did_not_ask_for_its_turn_passes_it_on(world: World) -> None:
    job, behind = parked(), parked(created_at=NOW + SECOND)
    world.state = replace(world.state, held={name_of(job): NOW + SECOND})
    world.shown = [behind]

    world.releaser.pass_on(job)

    assert world.called("reserve") == [([Turn(reservation=name_of(behind), due=NOW)], name_of(job))]


Step = Callable[[Releaser], None]
STEPS: Final[list[Step]] = [
    lambda releaser: releaser.leave(SLOT, line_stands=True),
    lambda releaser: releaser.pass_on(parked()),
    lambda releaser: releaser.look_again(parked()),
]


@pytest.mark.parametrize("step", STEPS)
def test_what_a_worker_does_for_others_is_best_effort(world: World, step: Step) -> None:
    world.error = StoreUnavailableError("busy")

    step(world.releaser)

    assert len(world.called("look")) == 1


def test_a_job_that_waits_for_nothing_has_no_line_to_look_at(world: World) -> None:
    world.releaser.pass_on(parked(wait=None))
    world.releaser.look_again(parked(wait=None))

    assert world.calls == []


def test_a_worker_looks_again_after_a_park(world: World) -> None:
    job = parked()
    world.hidden = [job]

    world.releaser.look_again(job)

    assert world.called("unpark") == [(job, NOW)]
