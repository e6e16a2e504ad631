"""A line moves on after any fate of one job: turns not taken, lost answers, newcomers, changed limits."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, a_job_type, stored, types_of
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tests.support.parked_jobs import ONE, park_only
from tests.support.parked_jobs import enter as enter_line
from tests.support.single_job import INVOCATION, Clock, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.job_types import JobType
from tidemill.application.ports import WHOLE, LimitSlot, Part, Unreadable, ignore_unreadable
from tidemill.application.waiting.release import Releaser
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.limits.limit_state import LimitState, run_name
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.document import SCHEMA_ATTRIBUTE, key
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits

LIMITED = replace(a_job_type(lambda _payload, _run: None), limit=ONE)
#: The line of `LIMITED` for the tenant of the tests.
LINE = Line.for_limit(f'["test.job", "", "{a_job().tenant}"]')


@pytest.fixture
def work(store: DynamoJobStore, limits: DynamoLimits, clock: Clock) -> Callable[..., Ending]:
    def work(job: Job, job_type: JobType = LIMITED) -> Ending:
        context = replace(tools(store, types_of(job_type), clock), limits=limits)
        return carried_out(Attempt(reference_to(stored(store, job)), context, deadline=clock.now + INVOCATION)).ending

    return work


def enter(limits: DynamoLimits, job: Job, **changes: Any) -> Any:
    return enter_line(limits, job, line=LINE, **changes)


def park(store: DynamoJobStore, limits: DynamoLimits, limit: Limit = ONE, **changes: Any) -> Job:
    job = a_job(**changes)
    assert enter(limits, job, limit=limit) == LINE
    return park_only(store, job, LINE)


def two_parked(store: DynamoJobStore, limits: DynamoLimits, **changes: Any) -> tuple[LimitSlot, Job, Job]:
    """The slot of a run, and two jobs that wait for it; the changes are to the first of them."""
    slot = enter(limits, a_job())
    return slot, park(store, limits, **changes), park(store, limits, created_at=NOW + SECOND)


def state(store: DynamoJobStore, job: Job) -> State:
    return stored(store, job).state


def test_a_released_job_whose_deadline_has_passed_gives_its_turn_to_the_next(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser, work: Callable[..., Ending], clock: Clock
) -> None:
    slot, late, behind = two_parked(store, limits, deadline=NOW + SECOND)
    clock.now += 2 * SECOND
    releaser.leave(slot, line_stands=True)

    assert work(late) is Ending.DEAD

    assert stored(store, late).death == DeathReason.DEADLINE
    assert state(store, behind) is State.QUEUED
    assert work(behind) is Ending.SUCCEEDED


@pytest.mark.parametrize(
    "changed",
    [{"limit": None}, {"limit_spans_tenants": True}, {"name": "test.other"}],
    ids=["no limit", "another line", "unknown type"],
)
def test_a_released_job_whose_type_has_changed_gives_its_turn_to_the_next(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser, work: Callable[..., Ending], changed: Any
) -> None:
    slot, first, behind = two_parked(store, limits)
    releaser.leave(slot, line_stands=True)

    work(first, replace(LIMITED, **changed))

    assert state(store, first) is not State.PARKED
    assert state(store, behind) is State.QUEUED


def test_a_slot_whose_answer_was_lost_goes_to_the_next_of_its_line(
    store: DynamoJobStore,
    limits: DynamoLimits,
    releaser: Releaser,
    work: Callable[..., Ending],
    client: FaultyClient,
) -> None:
    slot, first, behind = two_parked(store, limits)
    releaser.leave(slot, line_stands=True)
    client.faults = [None, Fault.ANSWER_LOST]

    assert work(first) is Ending.HELD

    assert state(store, behind) is State.QUEUED


def test_a_slot_is_handed_over_when_the_end_of_its_run_is_written(
    store: DynamoJobStore, limits: DynamoLimits, work: Callable[..., Ending], client: FaultyClient
) -> None:
    """Else the next run could begin before the effects of this one."""
    running = a_job()
    store.insert_if_absent(running)
    seen: list[tuple[State, State]] = []

    def handler(_payload: Any, _run: Any) -> None:
        parked = park(store, limits)
        client.watch = lambda _applied: seen.append((state(store, running), state(store, parked)))

    assert work(running, replace(LIMITED, handler=handler)) is Ending.SUCCEEDED

    assert (State.SUCCEEDED, State.QUEUED) in seen
    assert (State.RUNNING, State.QUEUED) not in seen


class Contended(DynamoLimits):
    def reserve(self, *_: object, **__: object) -> bool:
        return False


def test_a_slot_that_cannot_be_handed_over_is_free(
    store: DynamoJobStore, limits: DynamoLimits, clock: Clock, client: FaultyClient, table: Table
) -> None:
    slot, _, _ = two_parked(store, limits)
    contended = Contended(client, table=table.name)  # type: ignore[arg-type]  # a proxy

    Releaser(store=store, limits=contended, clock=clock).leave(slot, line_stands=True)

    assert not limits.look(LINE).held


@pytest.mark.parametrize("line_stands", [False, True])
def test_a_job_that_is_parked_while_a_slot_is_given_back_is_released(
    store: DynamoJobStore, limits: DynamoLimits, clock: Clock, client: FaultyClient, table: Table, *, line_stands: bool
) -> None:
    """The run that leaves has found no parked job; then one is parked, finds the slot taken, and looks again."""
    newcomers: list[Job] = []

    class Racing(DynamoLimits):
        def vacate(self, line: Line, name: str, change: Any = None) -> None:
            if not newcomers:
                newcomer = a_job()
                assert enter(limits, newcomer, now=NOW + SECOND) == LINE
                newcomers.append(park_only(store, newcomer, LINE))
                Releaser(store=store, limits=limits, clock=clock).look_again(newcomers[0])
            super().vacate(line, name, change)

    slot = enter(limits, a_job())
    if line_stands:
        store.cancel(park(store, limits), now=NOW)
    clock.now += SECOND
    racing = Racing(client, table=table.name)  # type: ignore[arg-type]  # a proxy

    Releaser(store=store, limits=racing, clock=clock).leave(slot, line_stands=True)

    assert state(store, newcomers[0]) is State.QUEUED


def test_a_run_releases_as_many_as_its_type_allows_now(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser
) -> None:
    """The item has the limit of the last job that found no room."""
    slot, first, behind = two_parked(store, limits)

    releaser.leave(replace(slot, limit=Limit(concurrency=2)), line_stands=True)

    assert [state(store, first), state(store, behind)] == [State.QUEUED, State.QUEUED]


def test_a_job_of_a_newer_version_does_not_keep_the_slot(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser, table: Table
) -> None:
    slot = enter(limits, a_job())
    newer = park(store, limits)
    table.client.update_item(
        TableName=table.name,
        Key=key(newer.tenant, newer.id),
        UpdateExpression="SET #schema = :newer",
        ExpressionAttributeNames={"#schema": SCHEMA_ATTRIBUTE},
        ExpressionAttributeValues={":newer": {"N": "99"}},
    )

    releaser.leave(slot, line_stands=True)

    assert not limits.look(LINE).held


def test_the_job_that_was_just_parked_is_released_beside_those_that_the_index_shows(
    store: DynamoJobStore, limits: DynamoLimits, clock: Clock
) -> None:
    two = Limit(concurrency=2)
    slots = [enter(limits, a_job(), limit=two) for _ in range(2)]
    shown, fresh = park(store, limits, two), park(store, limits, two, created_at=NOW + SECOND)
    for slot in slots:
        limits.vacate(LINE, run_name(slot.token))

    class Lagging:
        get, unpark = store.get, store.unpark

        def parked(
            self,
            _line: Line,
            *,
            most: int,
            since: datetime | None = None,
            unreadable: Unreadable = ignore_unreadable,
        ) -> list[Job]:
            return [shown][:most]

    Releaser(store=Lagging(), limits=limits, clock=clock).look_again(fresh)

    assert [state(store, shown), state(store, fresh)] == [State.QUEUED, State.QUEUED]


def test_wake_goes_on_after_a_line_that_cannot_be_read(
    store: DynamoJobStore, limits: DynamoLimits, clock: Clock, client: FaultyClient, table: Table
) -> None:
    broken = Line.for_limit("broken")

    class Broken(DynamoLimits):
        def look(self, line: Line) -> LimitState:
            if line == broken:
                raise ValueError("a rate of another version")
            return super().look(line)

    slot, first, _ = two_parked(store, limits)
    limits.vacate(LINE, run_name(slot.token))
    for _ in range(2):
        enter_line(limits, a_job(), line=broken)
    releaser = Releaser(store=store, limits=Broken(client, table=table.name), clock=clock)  # type: ignore[arg-type]  # a proxy

    released = releaser.release_all(part=WHOLE, in_time=lambda: True, draw=iter([0.1, 0.2, 0.3]).__next__)

    assert [job.id for job in released.jobs] == [first.id]
    assert [str(error) for error in released.failed] == ["a rate of another version"]


def test_each_part_of_wake_looks_at_every_line_in_turn(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser, clock: Clock
) -> None:
    slot, first, _ = two_parked(store, limits)
    limits.vacate(LINE, run_name(slot.token))
    released: list[str] = []
    for _ in range(4):
        found = releaser.release_all(part=Part(0, 4), in_time=lambda: True, draw=lambda: 0.5)
        released += [job.id for job in found.jobs]
        clock.now += 60 * SECOND

    assert first.id in released


def test_a_turn_of_a_job_that_was_cancelled_meanwhile_goes_to_the_next(
    store: DynamoJobStore, limits: DynamoLimits, clock: Clock
) -> None:
    slot, first, behind = two_parked(store, limits)

    class Cancelling:
        get, parked = store.get, store.parked

        def unpark(self, job: Job, *, now: datetime, due: datetime) -> None:
            if job.id == first.id:
                store.cancel(first, now=NOW)
            store.unpark(job, now=now, due=due)

    Releaser(store=Cancelling(), limits=limits, clock=clock).leave(slot, line_stands=True)

    assert state(store, behind) is State.QUEUED


def test_a_job_that_a_transaction_holds_keeps_its_turn_and_stops_no_other(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser, client: FaultyClient
) -> None:
    _slot, held, behind = two_parked(store, limits)
    raised = Limit(concurrency=3)
    client.faults = [None, Fault.IN_CONFLICT]

    assert [job.id for job in releaser.release(LINE, limit=raised)] == [behind.id]
    assert (state(store, held), state(store, behind)) == (State.PARKED, State.QUEUED)

    assert [job.id for job in releaser.release(LINE, limit=raised)] == [held.id]
    assert state(store, held) is State.QUEUED
