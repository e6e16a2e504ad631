"""A call that loses a race leaves no payload behind, and deletes none that a document names."""

from collections.abc import Callable
from datetime import datetime
from itertools import count

import pytest

from tests.support.builders import AN_UNDO, NOW, SECOND, SETTLEMENTS, TENANT, a_job, claimed, stored, with_changes
from tidemill.application.corrections.superseding import Superseder
from tidemill.application.corrections.undo import Undoer
from tidemill.application.submission.unnamed_payloads import delete_unnamed
from tidemill.domain.errors import (
    MissingResourceError,
    StoreUnavailableError,
    SupersedeRefusedError,
    TransactionConflictError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore


def _nothing() -> None:
    pass


class RecordedPayloads:
    """Each payload that is stored apart has a new location. `during` happens after the first was stored."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.deleted: list[str | None] = []
        #: Those to delete unless a document names them.
        self.later: list[str | None] = []
        self.during: Callable[[], object] = _nothing

    def stays_inline(self, job: Job) -> bool:
        raise NotImplementedError

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:
        location = f"file/{len(self.stored)}"
        self.stored.append(location)
        during, self.during = self.during, _nothing
        during()
        return with_changes(job, payload=None, payload_at=location)

    def load(self, job: Job) -> str:
        return str(job.payload.text)

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        del tenant, job_id
        self.deleted.append(location)

    def delete_later(self, job: Job) -> None:
        self.later.append(job.payload.location)


@pytest.fixture
def payloads() -> RecordedPayloads:
    return RecordedPayloads()


@pytest.fixture
def superseder(store: DynamoJobStore, payloads: RecordedPayloads) -> Superseder:
    return Superseder(store=store, payloads=payloads, clock=lambda: NOW)


@pytest.mark.parametrize(
    ("stored_at", "written_at", "deleted"),
    [("file/0", None, ["file/0"]), ("file/0", "file/1", ["file/0"]), ("file/0", "file/0", []), (None, None, [])],
)
@pytest.mark.parametrize("error", [None, StoreUnavailableError("throttled"), MissingResourceError("no bucket")])
def test_a_payload_that_no_document_names_is_deleted_if_that_is_possible(
    error: Exception | None, stored_at: str | None, written_at: str | None, deleted: list[str]
) -> None:
    class Payloads(RecordedPayloads):
        def delete(self, tenant: str, job_id: str, location: str | None) -> None:
            super().delete(tenant, job_id, location)
            if error:
                raise error

    payloads = Payloads()

    delete_unnamed(
        stored_at and a_job(payload_at=stored_at),  # type: ignore[arg-type]  # never empty
        written_at and a_job(payload_at=written_at),  # type: ignore[arg-type]
        payloads,
    )

    assert payloads.deleted == deleted


def test_the_payload_of_the_correction_stays(
    store: DynamoJobStore, superseder: Superseder, payloads: RecordedPayloads
) -> None:
    earlier = store.insert_if_absent(a_job())

    accepted = superseder.accept(a_job(supersedes=earlier.id))

    assert stored(store, accepted.job).payload.location == "file/0"
    assert payloads.deleted == []


def test_the_payload_of_the_same_correction_submitted_at_once_goes(
    store: DynamoJobStore, superseder: Superseder, payloads: RecordedPayloads
) -> None:
    correction = a_job(supersedes=store.insert_if_absent(a_job()).id)
    payloads.during = lambda: superseder.accept(replace(correction, trace="another"))

    accepted = superseder.accept(correction)

    assert (accepted.replayed, accepted.job.trace) == (True, "another")
    assert (accepted.job.payload.location, payloads.deleted) == ("file/1", ["file/0"])


def test_the_payload_of_a_refused_correction_goes(
    store: DynamoJobStore, superseder: Superseder, payloads: RecordedPayloads
) -> None:
    earlier = store.insert_if_absent(a_job())
    payloads.during = lambda: superseder.accept(a_job(supersedes=earlier.id))

    with pytest.raises(SupersedeRefusedError, match="already"):
        superseder.accept(a_job(supersedes=earlier.id))

    assert (payloads.stored, len(payloads.deleted)) == (["file/0", "file/1"], 1)


def a_clock() -> Callable[[], datetime]:
    """Each reading is later: two calls within a millisecond would take the write of the other for theirs."""
    times = count(1)
    return lambda: NOW + next(times) * SECOND


def succeeded(store: DynamoJobStore) -> Job:
    running = claimed(store, store.insert_if_absent(a_job()))
    settlement = replace(SETTLEMENTS[State.SUCCEEDED], undo=AN_UNDO)
    store.settle(running, settlement, now=NOW)
    return stored(store, running)


def test_the_payload_of_a_second_undo_at_once_goes(store: DynamoJobStore, payloads: RecordedPayloads) -> None:
    done = succeeded(store)
    undo = Undoer(store=store, payloads=payloads, clock=a_clock(), find=store.get)
    payloads.during = lambda: undo(TENANT, done.id)

    accepted = undo(TENANT, done.id)

    assert accepted
    assert accepted.replayed
    assert (accepted.job.payload.location, payloads.deleted) == ("file/1", ["file/0"])


def _conflict(*_arguments: object, **_named: object) -> Job:
    raise TransactionConflictError("others were faster")


def test_the_payload_of_a_correction_that_meets_another_transaction_goes_later(
    store: DynamoJobStore, superseder: Superseder, payloads: RecordedPayloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = store.insert_if_absent(a_job())
    monkeypatch.setattr(store, "supersede", _conflict)

    with pytest.raises(TransactionConflictError):
        superseder.accept(a_job(supersedes=earlier.id))

    assert (payloads.deleted, payloads.later) == ([], ["file/0"])


def test_the_payload_of_an_undo_that_meets_another_transaction_goes_later(
    store: DynamoJobStore, payloads: RecordedPayloads, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = succeeded(store)
    superseder = Superseder(store=store, payloads=payloads, clock=a_clock())
    undo = Undoer(store=store, payloads=payloads, clock=a_clock(), find=store.get)
    correction = superseder.accept(a_job(supersedes=done.id)).job
    other = succeeded(store)
    monkeypatch.setattr(store, "undo", _conflict)

    with pytest.raises(TransactionConflictError):
        undo(TENANT, other.id)
    with pytest.raises(TransactionConflictError):
        superseder.ready(correction)

    assert (payloads.deleted, payloads.later) == ([], ["file/1", "file/2"])


def test_a_correction_may_run_at_once_if_another_delivery_has_undone_the_effect_meanwhile(
    store: DynamoJobStore, payloads: RecordedPayloads
) -> None:
    superseder = Superseder(store=store, payloads=payloads, clock=a_clock())
    done = succeeded(store)
    correction = superseder.accept(a_job(supersedes=done.id)).job

    def undo_it() -> None:
        assert not superseder.ready(correction)
        undo = store.get(TENANT, correction.correction.after_undo or "")
        assert undo
        running = claimed(store, undo, now=undo.created_at)
        store.settle(running, SETTLEMENTS[State.SUCCEEDED], now=undo.created_at)

    payloads.during = undo_it

    assert superseder.ready(correction)
    assert payloads.deleted == ["file/1"]
