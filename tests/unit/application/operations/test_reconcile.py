"""The reconcile use case: it repairs lost jobs, stuck groups and orphans, and does no harm to jobs that are late."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import (
    LEASE,
    MILLISECOND,
    NOW,
    SECOND,
    a_job,
    a_job_type,
    behind_an_ended_head,
    brought_to,
    fresh_token,
    letter_for,
    reference_to,
    stored,
    types_of,
    with_changes,
)
from tests.support.faulty_client import FaultyClient
from tests.support.in_memory_dlq import Letters
from tests.support.job_tables import Table
from tests.support.passes import passes_of
from tests.support.single_job import Clock, World
from tidemill.application.attempt.run import Run
from tidemill.application.dispatch.dead_letter_sweep import Swept
from tidemill.application.dispatch.nudge import LONGEST_BETWEEN_NUDGES, MOST_NUDGES, UNDELIVERABLE_AFTER
from tidemill.application.operations.reconcile import ORPHANED_AFTER, Reconciled, Reconciler
from tidemill.application.passes.pace import Pace
from tidemill.application.passes.table_pass import TablePasses
from tidemill.application.ports import DeadLetterQueue, ReceivedDeadLetter
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.operations.repair_actions import RepairAction
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import LONGEST_PARKED
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.names import Lane

LIMIT = timedelta(minutes=30)
HOUR = timedelta(hours=1)
INVOCATION = timedelta(minutes=15)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW + LIMIT)


@pytest.fixture
def reconciler(store: DynamoJobStore, clock: Clock) -> Reconciler:
    return Reconciler(store=store, clock=clock, limit=LIMIT)


@pytest.fixture
def passes(table: Table, clock: Clock) -> TablePasses:
    return passes_of(table, clock)


def run(reconciler: Reconciler, passes: TablePasses) -> Reconciled:
    """A whole pass, as an operator asks for."""
    passes.ask()
    return reconciler.run(passes, time_left=lambda: INVOCATION)


def sweep(reconciler: Reconciler, *boxes: tuple[Lane, DeadLetterQueue]) -> Reconciled:
    return reconciler.sweep(dict(boxes), time_left=lambda: INVOCATION)


def test_a_job_is_overdue_once_it_is_late_by_the_limit(
    store: DynamoJobStore, clock: Clock, reconciler: Reconciler
) -> None:
    job = brought_to(store, State.QUEUED)

    assert [found.id for found in reconciler.overdue()] == [job.id]
    clock.now -= SECOND
    assert list(reconciler.overdue()) == []


def test_the_interval_between_nudges_doubles_up_to_a_day(
    store: DynamoJobStore, clock: Clock, reconciler: Reconciler
) -> None:
    job = brought_to(store, State.QUEUED)

    for wait in [min(LIMIT * 2**nudges, LONGEST_BETWEEN_NUDGES) for nudges in range(1, 9)]:
        assert reconciler.nudge(stored(store, job))
        clock.now += wait - SECOND
        assert list(reconciler.overdue()) == []
        assert not reconciler.nudge(stored(store, job))
        clock.now += SECOND
        assert [found.id for found in reconciler.overdue()] == [job.id]


def test_only_one_of_two_concurrent_reconcilers_nudges_a_job(
    store: DynamoJobStore, clock: Clock, reconciler: Reconciler
) -> None:
    job = brought_to(store, State.QUEUED)

    assert reconciler.nudge(job)
    clock.now += MILLISECOND
    assert not reconciler.nudge(job)


def test_a_delay_that_the_lane_explains_is_not_overdue(store: DynamoJobStore, clock: Clock) -> None:
    slow, quick = brought_to(store, State.QUEUED, lane=Lane.BULK), brought_to(store, State.QUEUED)
    delays = {Lane.BULK: HOUR, Lane.DEFAULT: timedelta(0)}
    reconciler = Reconciler(store=store, clock=clock, limit=LIMIT, lane_delay=delays.__getitem__)

    assert [job.id for job in reconciler.overdue()] == [quick.id]
    assert not reconciler.nudge(slow)
    clock.now += HOUR
    assert reconciler.nudge(slow)


def test_a_run_counts_every_kind_of_overdue_job(
    store: DynamoJobStore, clock: Clock, reconciler: Reconciler, passes: TablePasses
) -> None:
    jobs = {state: brought_to(store, state) for state in State}
    clock.now += LEASE + 1000 * SECOND + LONGEST_PARKED

    reconciled = run(reconciler, passes)

    # One of the four nudged jobs is the head of the waiting job's group.
    assert reconciled.actions == Counter(
        {(RepairAction.NUDGED, Lane.DEFAULT): 4, (RepairAction.WOKEN, Lane.DEFAULT): 2}
    )
    assert stored(store, jobs[State.PARKED]).state is State.QUEUED
    assert stored(store, jobs[State.QUEUED]).nudges.count == 1
    assert stored(store, jobs[State.RUNNING]).state is State.RETRYING
    assert stored(store, jobs[State.SCHEDULED]).state is State.QUEUED
    untouched = (State.WAITING, State.SUCCEEDED, State.DEAD, State.CANCELLED)
    assert [stored(store, jobs[state]) for state in untouched] == [jobs[state] for state in untouched]


def test_a_second_run_repeats_no_repair(
    store: DynamoJobStore, clock: Clock, reconciler: Reconciler, passes: TablePasses
) -> None:
    brought_to(store, State.QUEUED)
    behind_an_ended_head(store)
    run(reconciler, passes)
    clock.now += SECOND

    assert run(reconciler, passes).actions == Counter()


def test_a_job_dies_as_undeliverable_after_many_nudges_and_a_week(
    store: DynamoJobStore, clock: Clock, reconciler: Reconciler
) -> None:
    job = brought_to(store, State.QUEUED)
    nudges = 0

    while (current := stored(store, job)).state is State.QUEUED:
        clock.now += HOUR
        nudges += sum(map(reconciler.nudge, reconciler.overdue()))

    assert (current.state, current.death) == (State.DEAD, DeathReason.UNDELIVERABLE)
    assert current.finished_at is not None
    assert UNDELIVERABLE_AFTER <= current.finished_at - NOW <= UNDELIVERABLE_AFTER + 2 * LONGEST_BETWEEN_NUDGES
    assert MOST_NUDGES < nudges <= MOST_NUDGES + 8


def test_frequent_runs_within_a_day_kill_no_job(store: DynamoJobStore, clock: Clock) -> None:
    job = brought_to(store, State.QUEUED)
    impatient = Reconciler(store=store, clock=clock, limit=SECOND)

    for _ in range(24 * 6):
        clock.now += timedelta(minutes=10)
        for found in impatient.overdue():
            impatient.nudge(found)

    assert stored(store, job).state is State.QUEUED


def test_a_group_whose_head_ended_unnoticed_advances(
    store: DynamoJobStore, reconciler: Reconciler, passes: TablePasses
) -> None:
    waiting = behind_an_ended_head(store, run_at=None)

    reconciled = run(reconciler, passes)

    assert reconciled.actions == Counter({(RepairAction.ADVANCED, Lane.DEFAULT): 1})
    assert stored(store, waiting).state is State.QUEUED


def test_orphaned_payloads_are_discarded_once_they_are_a_day_old(
    table: Table, clock: Clock, reconciler: Reconciler, passes: TablePasses
) -> None:
    def no_bucket() -> Bucket:
        raise AssertionError("none of these is so large")

    payloads = DynamoPayloads(table.client, table=table.name, bucket=no_bucket, new_token=fresh_token)
    large = '"' + "x" * 5_000 + '"'
    used = payloads.put_away(a_job(payload=large, state=State.WAITING, due=None))
    table.put(used)
    replaced = payloads.put_away(with_changes(used, payload=large, payload_at=None))
    ownerless = payloads.put_away(a_job(payload=large))
    clock.now = NOW + ORPHANED_AFTER - MILLISECOND
    assert run(reconciler, passes).count(RepairAction.DISCARDED) == 0

    clock.now += MILLISECOND
    assert run(reconciler, passes).count(RepairAction.DISCARDED) == 2

    assert payloads.load(used) == large
    for orphan in (replaced, ownerless):
        with pytest.raises(Exception, match="is missing, or this function may not read it"):
            payloads.load(orphan)


def test_dead_letter_messages_are_handled_by_the_rule(
    store: DynamoJobStore, clock: Clock, reconciler: Reconciler
) -> None:
    dead, done, stranded = (brought_to(store, state) for state in (State.DEAD, State.SUCCEEDED, State.QUEUED))
    box = Letters(letter_for(dead), letter_for(done), reference_to(stranded))
    clock.now = NOW + timedelta(minutes=1)

    reconciled = sweep(reconciler, (Lane.DEFAULT, box))

    assert reconciled.dead_letters == {Lane.DEFAULT: Swept(outdated=1, nudged=1, kept=1)}
    assert [dead_letter.body for dead_letter in box.waiting] == [letter_for(dead)]


def test_an_unreadable_item_is_reported_and_does_not_block_others(
    store: DynamoJobStore, table: Table, reconciler: Reconciler, passes: TablePasses
) -> None:
    jobs = [brought_to(store, State.QUEUED) for _ in range(3)]
    table.put(jobs[1], schema={"N": "99"})

    reconciled = run(reconciler, passes)

    assert reconciled.count(RepairAction.NUDGED) == 2
    assert [item.key for item in reconciled.unreadable] == [f"{jobs[1].tenant}#{jobs[1].id}"]


def test_a_job_whose_repair_dynamodb_refuses_is_reported_and_does_not_block_others(
    store: DynamoJobStore, clock: Clock, passes: TablePasses
) -> None:
    """For example one that is too large for another attribute."""
    refused, lost = store.insert_if_absent(a_job()), store.insert_if_absent(a_job())
    nudge = store.nudge

    def refuse(job: Job, **given: Any) -> None:
        if job.id == refused.id:
            raise ClientError({"Error": {"Code": "ValidationException"}}, "UpdateItem")
        nudge(job, **given)

    store.nudge = refuse  # type: ignore[method-assign]
    reconciled = Reconciler(store=store, clock=clock, limit=LIMIT).run(passes, time_left=lambda: INVOCATION)

    assert [item.key for item in reconciled.unreadable] == [f"{refused.tenant}#{refused.id}"]
    assert stored(store, lost).nudges.count == 1
    assert reconciled.progress is not None
    assert reconciled.progress.completed


def test_a_pass_repairs_at_the_pace_of_its_writes_and_reads_on_without_one(
    store: DynamoJobStore, clock: Clock, passes: TablePasses
) -> None:
    """25 nudges at ten a second take two and a half seconds. Items that need no repair take no time."""
    pauses: list[float] = []
    for state in (State.QUEUED,) * 25 + (State.SUCCEEDED,) * 10:
        brought_to(store, state)
    writes = Pace(10, clock=lambda: NOW + timedelta(seconds=sum(pauses)), pause=pauses.append)

    reconciled = run(Reconciler(store=store, clock=clock, limit=LIMIT, writes=writes), passes)

    assert reconciled.count(RepairAction.NUDGED) == len(pauses) == 25
    # Threads pay side by side, and this clock adds their pauses.
    assert sum(pauses) >= 2.5


def test_a_group_whose_next_job_is_unreadable_is_reported_and_not_retried(
    store: DynamoJobStore, table: Table, reconciler: Reconciler, passes: TablePasses
) -> None:
    waiting = behind_an_ended_head(store)
    table.client.put_item(TableName=table.name, Item={**(table.item(waiting) or {}), "schema": {"N": "99"}})

    reconciled = run(reconciler, passes)

    assert reconciled.actions == Counter()
    assert [item.key for item in reconciled.unreadable] == [f"the group {waiting.group.key} of {waiting.tenant}"]


def test_a_dead_letter_message_whose_job_is_unreadable_stays(
    store: DynamoJobStore, table: Table, reconciler: Reconciler
) -> None:
    job = brought_to(store, State.DEAD)
    table.put(job, schema={"N": "99"})
    box = Letters(letter_for(job))

    assert sweep(reconciler, (Lane.DEFAULT, box)).dead_letters == {Lane.DEFAULT: Swept(kept=1)}
    assert len(box.waiting) == 1


@pytest.mark.parametrize("error", [StoreUnavailableError("no answer"), KeyError("QueueDoesNotExist")], ids=repr)
def test_a_lane_whose_dead_letter_queue_is_unavailable_does_not_block_others(
    store: DynamoJobStore, reconciler: Reconciler, error: Exception
) -> None:
    class Unavailable(Letters):
        def receive(self, *, hidden_for: timedelta) -> Sequence[ReceivedDeadLetter]:
            raise error

    dead = brought_to(store, State.DEAD)

    reconciled = sweep(reconciler, (Lane.CRITICAL, Unavailable()), (Lane.DEFAULT, Letters(letter_for(dead))))

    assert reconciled.dead_letters == {Lane.DEFAULT: Swept(kept=1)}
    assert reconciled.actions == Counter({(RepairAction.FAILED, Lane.CRITICAL): 1})
    named = [item.key for item in reconciled.unreadable]
    # An outage ends by itself; any other error is reported.
    assert named == ([] if isinstance(error, StoreUnavailableError) else ["the dead-letter queue of lane critical"])


def test_a_lane_whose_dead_letter_queue_fails_amid_its_sweep_reports_what_was_done(reconciler: Reconciler) -> None:
    class Failing(Letters):
        def receive(self, *, hidden_for: timedelta) -> Sequence[ReceivedDeadLetter]:
            if len(self.waiting) <= 2:
                raise StoreUnavailableError
            return super().receive(hidden_for=hidden_for)

    reconciled = sweep(reconciler, (Lane.CRITICAL, Failing(*[None] * 12)))

    assert reconciled.dead_letters == {Lane.CRITICAL: Swept(outdated=10, unfinished=True)}
    assert reconciled.actions == Counter({(RepairAction.FAILED, Lane.CRITICAL): 1})


def lost_in_the_queue(world: World) -> None:
    """The job's message is lost silently."""
    world.run_until(lambda: bool(world.messages))
    world.messages.clear()
    world.clock.now += 2 * LIMIT


def test_a_job_whose_message_was_lost_runs_after_a_reconcile(store: DynamoJobStore, client: FaultyClient) -> None:
    runs: list[Run] = []
    world = World(store, client, types_of(a_job_type(lambda _payload, run: runs.append(run))))
    world.submit("test.job")
    lost_in_the_queue(world)
    reconciler = Reconciler(store=store, clock=world.clock, limit=LIMIT)

    assert [reconciler.nudge(job) for job in reconciler.overdue()] == [True]
    world.run_until(lambda: world.job is not None and world.job.state is State.SUCCEEDED)

    assert len(runs) == 1


def test_a_late_job_runs_once_although_it_was_nudged(store: DynamoJobStore, client: FaultyClient) -> None:
    runs: list[Run] = []
    world = World(store, client, types_of(a_job_type(lambda _payload, run: runs.append(run))))
    world.submit("test.job")
    world.run_until(lambda: bool(world.messages))
    world.clock.now += 2 * LIMIT
    reconciler = Reconciler(store=store, clock=world.clock, limit=LIMIT)

    assert [reconciler.nudge(job) for job in reconciler.overdue()] == [True]
    world.run_until(lambda: len(world.reports) == 2)

    assert len(runs) == 1
