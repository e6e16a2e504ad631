"""The job that makes up for what a handler skipped: what it gets from the success, and what a second call does."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.support.builders import NOW, SECOND, SKIPPED, a_job
from tidemill.application.backfill import Backfiller, backfill_id
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.skipped_work import Backfilled
from tidemill.domain.states import State
from tidemill.names import Lane

DONE = a_job(id="done", tenant="t", lane=Lane.CRITICAL, state=State.SUCCEEDED, hops=3, skipped=SKIPPED, trace="pia")


class Store:
    """`BackfillStore` and `Payloads`."""

    def __init__(self, refusal: Exception | None = None, *, present: Job | None = None) -> None:
        self.refusal = refusal
        self.present = present
        self.written: list[tuple[Job, Job, Backfilled]] = []
        self.deleted: list[str | None] = []

    def backfill(self, done: Job, job: Job, entry: Backfilled) -> None:
        if self.refusal:
            raise self.refusal
        self.written.append((done, job, entry))

    def get(self, tenant: str, job_id: str) -> Job | None:
        assert (tenant, job_id) == ("t", backfill_id(DONE, "geo"))
        return self.present

    def load(self, job: Job) -> str:
        return f'{{"of":"{job.id}"}}'

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:
        return replace(job, payload_at="apart")

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        assert tenant == "t"
        self.deleted.append(location)


def backfilled(store: Store, done: Job = DONE, name: str = "geo") -> bool:
    backfiller = Backfiller(store=store, payloads=store, clock=lambda: NOW + SECOND)  # type: ignore[arg-type]
    return backfiller.backfill(done, name)


def test_it_is_a_job_of_the_other_type_with_the_same_payload_and_yields_to_all_others() -> None:
    store = Store()

    assert backfilled(store)

    ((done, job, entry),) = store.written
    assert done == DONE
    assert (job.id, job.tenant, job.type, job.lane) == (backfill_id(DONE, "geo"), "t", "test.geo", Lane.BULK)
    assert (job.payload, job.payload_at, job.trace, job.parent, job.hops) == (
        '{"of":"done"}',
        "apart",
        "pia",
        "done",
        # A long job has many hops, and the type that makes up for it may allow fewer.
        0,
    )
    assert (job.state, job.generation, job.attempt) == (State.QUEUED, 1, 0)
    assert (job.created_at, job.due) == (NOW + SECOND, NOW + SECOND)
    assert job.retention == SKIPPED[0].retention == timedelta(days=90)
    assert entry == Backfilled(name="geo", job_id=job.id, at=NOW + SECOND)
    assert store.deleted == []


@pytest.mark.parametrize(
    ("done", "name"),
    [
        (DONE, "none"),
        (replace(DONE, skipped=()), "geo"),
        (replace(DONE, backfilled=(Backfilled(name="geo", job_id="b", at=NOW),)), "geo"),
    ],
)
def test_work_that_is_not_owed_makes_no_job(done: Job, name: str) -> None:
    store = Store()
    assert not backfilled(store, done, name)
    assert store.written == []


@pytest.mark.parametrize(
    ("present", "deleted"),
    [(None, ["apart"]), (a_job(payload_at="elsewhere"), ["apart"]), (a_job(payload_at="apart"), [])],
)
def test_a_call_that_another_was_faster_than_deletes_only_a_payload_that_no_job_has(
    present: Job | None, deleted: list[str]
) -> None:
    store = Store(WriteRefusedError("backfill", None), present=present)
    assert not backfilled(store)
    assert store.deleted == deleted


def test_an_outage_leaves_the_payload_since_the_write_may_be_applied() -> None:
    store = Store(StoreUnavailableError("down"))
    with pytest.raises(StoreUnavailableError):
        backfilled(store)
    assert store.deleted == []


class WithoutPayload(Store):
    """The payload of the success is missing, and a second read finds this document of it."""

    def load(self, job: Job) -> str:
        raise MalformedDocumentError(f"the payload of job {job.id} is missing")

    def get(self, tenant: str, job_id: str) -> Job | None:
        assert (tenant, job_id) == ("t", "done")
        return self.present


@pytest.mark.parametrize(
    ("current", "lost"),
    [
        (None, False),
        # Another job of its key has replaced it.
        (replace(DONE, created_at=NOW + SECOND), False),
        # A migration has moved the payload.
        (replace(DONE, payload_at="elsewhere"), False),
        (DONE, True),
        (replace(DONE, tags=("a",)), True),
    ],
)
def test_a_missing_payload_is_a_fault_unless_its_job_has_changed_meanwhile(current: Job | None, lost: bool) -> None:
    store = WithoutPayload(present=current)
    if lost:
        with pytest.raises(MalformedDocumentError, match="the payload of job done is missing"):
            backfilled(store)
    else:
        assert not backfilled(store)
    assert (store.written, store.deleted) == ([], [])


@pytest.mark.parametrize(
    "other", [replace(DONE, id="x"), replace(DONE, tenant="x"), replace(DONE, created_at=NOW + SECOND)]
)
def test_each_job_and_name_has_one_id(other: Job) -> None:
    assert backfill_id(DONE, "geo") == backfill_id(replace(DONE, hops=9), "geo")
    assert len({backfill_id(DONE, "geo"), backfill_id(DONE, "agent"), backfill_id(other, "geo")}) == 3
