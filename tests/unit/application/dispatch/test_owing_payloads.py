"""A payload that a caller cannot delete is owed, so that no file stays for years because of one failed call."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count

import pytest

from tests.support.builders import (
    AN_UNDO,
    NOW,
    SECOND,
    SETTLEMENTS,
    TENANT,
    a_job,
    a_job_type,
    brought_to,
    claimed,
    fresh_token,
    stored,
    types_of,
    with_changes,
)
from tests.support.in_memory_owed_work import InMemoryOwedWork
from tests.support.settling import RUNNING as RUN
from tests.support.settling import World as Settling
from tests.unit.application.attempt.test_settle import MADE, TWO
from tests.unit.application.operations.test_migration import Migrating, Stored
from tests.unit.application.operations.test_migration import Table as MigratedTable
from tidemill.application.control.redrive import Redriver
from tidemill.application.corrections.superseding import Superseder
from tidemill.application.corrections.undo import Undoer
from tidemill.application.debounce.debouncing import Debouncer
from tidemill.application.dispatch.owed import Kind, OwedRunner, Work
from tidemill.application.dispatch.owing_payloads import OwingPayloads
from tidemill.application.features import submit_features
from tidemill.application.submission.submit import Submit
from tidemill.domain.errors import (
    StoreUnavailableError,
    SupersedeRefusedError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.in_memory.single_job import Inline

DOWN = StoreUnavailableError("reduce your request rate")


def _nothing() -> None:
    pass


class Files(Inline):
    """Each payload is a file. `during` happens after the first was stored. Each deletion raises `error`, if set."""

    def __init__(self) -> None:
        self.error: Exception | None = DOWN
        self.deleted: list[str | None] = []
        self.during: Callable[[], object] = _nothing
        self._numbers = count()

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:
        location = f"file/{next(self._numbers)}"
        during, self.during = self.during, _nothing
        during()
        return with_changes(job, payload=None, payload_at=location)

    def load(self, job: Job) -> str:
        return "{}"

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        if self.error:
            raise self.error
        self.deleted.append(location)


class World:
    def __init__(self, store: DynamoJobStore) -> None:
        self.store, self.files, self.owed = store, Files(), InMemoryOwedWork()
        self.payloads = OwingPayloads(self.files, owed=lambda: self.owed, clock=self.clock)
        self._times = count(1)

    def clock(self) -> datetime:
        """Each reading is later: two calls within a millisecond would take the write of the other for theirs."""
        return NOW + next(self._times) * SECOND

    def superseder(self) -> Superseder:
        return Superseder(store=self.store, payloads=self.payloads, clock=self.clock)

    def submit(self) -> Submit:
        return submit_features.submit(
            store=self.store,
            payloads=self.payloads,
            job_types=types_of(a_job_type()),
            clock=self.clock,
            new_id=fresh_token,
        )

    def succeeded(self) -> Job:
        running = claimed(self.store, self.store.insert_if_absent(a_job()))
        self.store.settle(running, replace(SETTLEMENTS[State.SUCCEEDED], undo=AN_UNDO), now=NOW)
        return stored(self.store, running)


@pytest.fixture
def world(store: DynamoJobStore) -> World:
    return World(store)


def _replayed(world: World) -> str:
    submission = Submission(type="test.job", payload={}, key="twice")
    for _ in range(2):
        accepted = world.submit()(submission, tenant=TENANT, trace=fresh_token())
    assert accepted.replayed
    return "file/1"


def _met_a_transaction(world: World) -> str:
    def busy(job: Job, *, batch: Job | None = None) -> Job:
        raise TransactionConflictError(f"{job.id}, {batch}")

    world.store.insert_if_absent = busy  # type: ignore[method-assign]  # for once
    with pytest.raises(TransactionConflictError):
        world.submit()(Submission(type="test.job", payload={}, group="parcels"), tenant=TENANT, trace="t")
    return "file/0"


def _superseded_at_once(world: World) -> str:
    earlier = world.store.insert_if_absent(a_job())
    world.files.during = lambda: world.superseder().accept(a_job(supersedes=earlier.id))
    with pytest.raises(SupersedeRefusedError):
        world.superseder().accept(a_job(supersedes=earlier.id))
    return "file/0"


def _undone_at_once(world: World) -> str:
    done = world.succeeded()
    undo = Undoer(store=world.store, payloads=world.payloads, clock=world.clock, find=world.store.get)
    world.files.during = lambda: undo(TENANT, done.id)
    assert undo(TENANT, done.id)
    return "file/0"


def _debounced_at_once(world: World) -> str:
    def conflict(job: Job, *, after: str | None) -> Job:
        raise TransactionConflictError(f"{job.id}, {after}")

    world.store.begin_debounce = conflict  # type: ignore[method-assign]  # for once
    debouncer = Debouncer(store=world.store, payloads=world.payloads, clock=world.clock)
    submit = submit_features.submit(
        store=world.store,
        payloads=world.payloads,
        job_types=types_of(a_job_type()),
        clock=world.clock,
        new_id=fresh_token,
        debounce=debouncer.accept,
    )
    submission = Submission(type="test.job", payload={}, debounce=SECOND, debounce_key="ada")
    with pytest.raises(TransactionConflictError):
        submit(submission, tenant=TENANT, trace="t")
    return "file/0"


def _redriven_by_another(world: World) -> str:
    dead = brought_to(world.store, State.DEAD)
    redriver = Redriver(store=world.store, clock=lambda: NOW, new_token=fresh_token)
    redriver.redrive(dead, by="bob")
    assert not redriver.redrive_with(dead, "{}", world.payloads, by="ada")
    return "file/0"


def _settled_with_a_follow_up_that_existed(world: World) -> str:
    settling = Settling([TWO])
    _give(settling, world)
    settling.settle(MADE)
    return str(TWO.payload.location)


def _settled_otherwise(world: World) -> str:
    ended = with_changes(RUN, last_owner="mine", state=State.DEAD)
    settling = Settling(WriteRefusedError("settle", None), current=ended)
    _give(settling, world)
    settling.settle(replace(MADE, follow_ups=[TWO]))
    return str(TWO.payload.location)


def _give(settling: Settling, world: World) -> None:
    settling.settler._context = replace(settling.settler._context, payloads=world.payloads)


class Owing(Stored):
    """Stored payloads whose deletions fail and are owed."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.delete = world.payloads.delete  # type: ignore[method-assign]  # of this object alone


def _migrated(world: World, error: Exception | None = None) -> None:
    ran = Migrating(
        MigratedTable([a_job(payload='{"n":1}', payload_at="file/old")], error=error), payloads=Owing(world)
    )
    assert (ran.failed, ran.progress.rewritten) == ([], 0 if error else 1)


def _replaced_by_a_migration(world: World) -> str:
    _migrated(world)
    return "file/old"


def _changed_before_a_migration(world: World) -> str:
    _migrated(world, WriteRefusedError("rewrite", None))
    return "new"


CALLERS = [
    _replayed,
    _superseded_at_once,
    _undone_at_once,
    _redriven_by_another,
    _settled_with_a_follow_up_that_existed,
    _settled_otherwise,
    _replaced_by_a_migration,
    _changed_before_a_migration,
]


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.__name__.strip("_"))
def test_a_caller_owes_the_payload_that_it_cannot_delete_and_wake_deletes_it(
    world: World, caller: Callable[[World], str]
) -> None:
    location = caller(world)

    ((work, owed),) = world.owed.stored.items()
    assert (work.kind, work.tenant, work.payload_at) == (Kind.DELETE_PAYLOAD, TENANT, location)
    assert owed.error == "StoreUnavailableError: reduce your request rate"
    world.files.error = None
    OwedRunner(owed=world.owed, store=world.store, payloads=world.files, clock=world.clock).run_pending(lambda: True)
    assert (world.files.deleted, world.owed.stored) == ([location], {})


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("caller", [_met_a_transaction, _debounced_at_once], ids=["insert", "burst"])
def test_a_payload_whose_job_may_be_written_yet_is_deleted_in_a_minute_unless_it_is(
    world: World, caller: Callable[[World], str], *, applied: bool
) -> None:
    """The network holds up the first send, and its repeat meets another transaction."""
    world.files.error = None
    location = caller(world)
    ((work, owed),) = world.owed.stored.items()
    assert timedelta(minutes=1) <= owed.next_try - NOW < timedelta(minutes=2)
    if applied:
        # Past the conflict that the caller met.
        DynamoJobStore.insert_if_absent(world.store, a_job(id=work.name, payload=None, payload_at=location))

    OwedRunner(owed=world.owed, store=world.store, payloads=world.files, clock=lambda: owed.next_try).run_pending(
        lambda: True
    )

    assert (world.files.deleted, world.owed.stored) == ([] if applied else [location], {})


@pytest.mark.parametrize("caller", CALLERS[:-2], ids=lambda caller: caller.__name__.strip("_"))
def test_a_caller_has_its_result_though_a_payload_can_neither_be_deleted_nor_owed(
    world: World, caller: Callable[[World], str]
) -> None:
    world.owed.error = DOWN
    caller(world)
    assert world.owed.stored == {}


def test_a_deletion_that_succeeds_is_not_owed_and_asks_for_no_owed_work(world: World) -> None:
    world.files.error = None
    payloads = OwingPayloads(world.files, owed=lambda: pytest.fail("not needed"), clock=world.clock)

    payloads.delete(TENANT, "job", "file/0")

    assert world.files.deleted == ["file/0"]


@pytest.mark.parametrize("error", [DOWN, PermissionError("denied")], ids=lambda error: type(error).__name__)
def test_the_owed_work_names_the_job_and_the_time_of_the_failure(world: World, error: Exception) -> None:
    world.files.error = error

    world.payloads.delete(TENANT, "job", "file/0")

    work = Work(kind=Kind.DELETE_PAYLOAD, tenant=TENANT, name="job", payload_at="file/0")
    assert list(world.owed.stored) == [work]
    assert world.owed.stored[work].since == NOW + SECOND


def test_a_deletion_that_cannot_be_owed_raises_why_it_failed(world: World) -> None:
    world.owed.error = PermissionError("no right to owe")
    with pytest.raises(StoreUnavailableError, match="reduce your request rate"):
        world.payloads.delete(TENANT, "job", "file/0")


def test_all_else_is_as_without_it(world: World) -> None:
    job = a_job()
    assert world.payloads.put_away(job, now=NOW).payload.location == "file/0"
    assert (world.payloads.load(job), world.payloads.stays_inline(job)) == ("{}", True)
