"""A submission that is checked and not yet written: its place among others, its one write, and what a refusal finds."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job, a_job_type, types_of, with_changes
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.features import submit_features
from tidemill.application.submission.job_ids import submitted_job_id
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Submit
from tidemill.domain.batches.batches import CLOSED
from tidemill.domain.errors import (
    BatchRefusedError,
    InvalidPayloadError,
    KeyReusedError,
    QuotaExceededError,
    StoreUnavailableError,
    SubmissionPausedError,
    SubmissionShedError,
    TidemillError,
    TransactionConflictError,
    UnknownJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.waiting.signals import Signal
from tidemill.names import BATCH_TYPE, EVENT_TYPE, FLOW_TYPE

MINUTE = timedelta(minutes=1)
TYPES = types_of(a_job_type(), a_job_type(name=EVENT_TYPE), a_job_type(name=BATCH_TYPE), a_job_type(name=FLOW_TYPE))


class Jobs(InMemoryJobs):
    """It notes each read, stores each payload apart if `apart`, and notes each payload that is deleted."""

    def __init__(self, *jobs: Job, apart: bool = False) -> None:
        super().__init__(*jobs)
        self.apart = apart
        self.reads: list[str] = []
        self.deleted: list[str | None] = []
        self.later: list[str | None] = []
        self.undeletable = False

    def get(self, tenant: str, job_id: str) -> Job | None:
        self.reads.append(job_id)
        return super().get(tenant, job_id)

    def insert_if_absent(self, job: Job, *, batch: Job | None = None) -> Job:
        self._write("insert", job.id, batch and batch.id)
        if present := self.documents.get((job.tenant, job.id)):
            raise WriteRefusedError("insert_if_absent", present)
        return self._kept(job)

    def put_away(self, job: Job, **_now: Any) -> Job:
        return with_changes(job, payload=None, payload_at="apart") if self.apart else job

    def stays_inline(self, job: Job) -> bool:
        return not self.apart and job.payload.text is not None

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        self.deleted.append(location)
        if self.undeletable:
            raise StoreUnavailableError(f"{tenant}, {job_id}")

    def delete_later(self, job: Job) -> None:
        self.later.append(job.payload.location)


def submit_to(jobs: Jobs, **changes: Any) -> Submit:
    parts: dict[str, Any] = {
        "store": jobs,
        "payloads": jobs,
        "job_types": TYPES,
        "clock": lambda: NOW,
        "new_id": lambda: "new",
    }
    return submit_features.submit(**parts | changes)


def a_submission(**asked: Any) -> Submission:
    return Submission(**{"type": "test.job", "payload": {"n": 1}} | asked)


def made_by(submission: Submission, **changes: Any) -> Job:
    """The job of an earlier submission."""
    return with_changes(submit_to(Jobs()).prepare(submission, tenant=TENANT, trace="earlier"), **changes)


KEYED = a_submission(key="k")


def test_a_submission_goes_behind_those_of_its_job_group_and_burst() -> None:
    def keys(**asked: Any) -> list[str]:
        return [*submit_to(Jobs()).pending(a_submission(**asked), tenant=TENANT, trace="t").serial_keys]

    debounced = made_by(a_submission(debounce=SECOND))
    assert debounced.burst is not None

    assert keys() == ["job new"]
    assert keys(key="k") == [f"job {submitted_job_id(TENANT, 'k')}"]
    assert keys(group="a") == ["job new", "group a"]
    assert keys(debounce=SECOND) == ["job new", f"burst {debounced.burst.name}"]
    # The check refuses these, so an earlier one is looked for.
    assert keys(type="unknown") == []
    assert keys(type="unknown", key="k") == [f"job {submitted_job_id(TENANT, 'k')}"]


def test_a_submission_that_is_not_accepted_now_goes_behind_the_same_ones() -> None:
    submit = submit_to(Jobs(), admit=refusing(SubmissionShedError("test.job", level=1, retry_after=SECOND)))
    pending = submit.pending(a_submission(key="k", group="a"), tenant=TENANT, trace="t")
    assert pending.serial_keys == [f"job {submitted_job_id(TENANT, 'k')}", "group a"]
    assert pending.plain() is None


@pytest.mark.parametrize("more", [{"group": "a"}, {"supersedes": "k"}, {"batch": "b"}, {"debounce": SECOND}])
@pytest.mark.parametrize("apart", [False, True])
def test_only_a_job_that_is_one_document_may_go_with_others(apart: bool, more: dict[str, Any]) -> None:
    submit = submit_to(Jobs(apart=apart))

    alone = submit.pending(a_submission(key="k"), tenant=TENANT, trace="t").plain()

    assert alone == (None if apart else Accepted(job=replace(made_by(KEYED), trace="t"), replayed=False))
    assert submit.pending(a_submission(**more), tenant=TENANT, trace="t").plain() is None


@pytest.mark.parametrize(
    ("earlier", "replayed", "deferred"), [([], False, True), ([made_by(KEYED)], True, False)], ids=["new", "repeated"]
)
@pytest.mark.parametrize("delays", [True, False])
def test_strain_defers_a_job_that_is_new(delays: bool, earlier: list[Job], replayed: bool, deferred: bool) -> None:
    def later(job: Job) -> Job:
        return replace(job, run_at=NOW + MINUTE, due=NOW + MINUTE) if delays else job

    submit = submit_to(Jobs(*earlier), admit=later)
    pending = submit.pending(KEYED, tenant=TENANT, trace="t")
    plain, inserted = pending.plain(), pending.insert()

    assert plain is not None
    assert (plain.replayed, plain.deferred) == (False, delays)
    assert (inserted.replayed, inserted.deferred) == (replayed, deferred and delays)
    assert inserted.job.run_at == (None if replayed or not delays else NOW + MINUTE)


def refusing(error: TidemillError) -> Callable[[Job], Job]:
    def admit(_job: Job) -> Job:
        raise error

    return admit


NOT_NOW = [
    SubmissionShedError("test.job", level=1, retry_after=SECOND),
    QuotaExceededError(count=1, period=MINUTE, known=1, retry_after=SECOND),
    SubmissionPausedError("test.job", retry_after=SECOND),
]


@pytest.mark.parametrize("error", NOT_NOW, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("submission", [KEYED, a_submission(unique=Unique(period=timedelta(days=1)))])
def test_what_is_not_accepted_now_finds_the_job_of_an_earlier_submission(
    submission: Submission, error: TidemillError
) -> None:
    first = made_by(submission)

    def again(*jobs: Job, payload: Any = None) -> Accepted:
        asked = replace(submission, payload=payload or submission.payload)
        return submit_to(Jobs(*jobs), admit=refusing(error))(asked, tenant=TENANT, trace="t")

    assert again(first) == Accepted(job=first, replayed=True)
    for earlier in ([], [replace(first, tenant="other")], [with_changes(first, expires_at=NOW)]):
        with pytest.raises(type(error)):
            again(*earlier)
    assert again(with_changes(first, expires_at=NOW + SECOND)).replayed
    with pytest.raises(KeyReusedError if submission.key else type(error)):
        again(first, payload={"n": 2})


@pytest.mark.parametrize("error", NOT_NOW, ids=lambda error: type(error).__name__)
def test_what_can_have_no_earlier_submission_is_refused_before_any_read(error: TidemillError) -> None:
    jobs = Jobs(a_job(id="new"))
    with pytest.raises(type(error)):
        submit_to(jobs, admit=refusing(error)).pending(a_submission(), tenant=TENANT, trace="t")
    assert jobs.reads == []


def test_a_submission_whose_times_have_passed_finds_the_job_of_the_first() -> None:
    submission = a_submission(key="k", deadline=NOW + SECOND)
    first = made_by(submission)
    jobs = Jobs(first)
    late = submit_to(jobs, clock=lambda: NOW + MINUTE)

    assert late(submission, tenant=TENANT, trace="t") == Accepted(job=first, replayed=True)
    with pytest.raises(KeyReusedError):
        late(replace(submission, payload={"n": 2}), tenant=TENANT, trace="t")
    for gone in (Jobs(), Jobs(with_changes(first, expires_at=NOW))):
        with pytest.raises(InvalidPayloadError):
            submit_to(gone, clock=lambda: NOW + MINUTE)(submission, tenant=TENANT, trace="t")
    jobs.reads.clear()
    with pytest.raises(InvalidPayloadError):
        late(replace(submission, key=None), tenant=TENANT, trace="t")
    assert jobs.reads == []


def test_a_submission_of_a_type_that_was_removed_finds_the_job_of_the_first() -> None:
    first = made_by(KEYED)
    without = submit_to(Jobs(first), job_types=types_of())
    assert without(KEYED, tenant=TENANT, trace="t") == Accepted(job=first, replayed=True)
    with pytest.raises(UnknownJobTypeError):
        without(a_submission(key="other"), tenant=TENANT, trace="t")


def test_a_body_that_no_version_can_have_accepted_is_refused_without_a_read() -> None:
    jobs = Jobs(made_by(KEYED))
    with pytest.raises(InvalidPayloadError):
        submit_to(jobs)(replace(KEYED, payload={"n": float("nan")}), tenant=TENANT, trace="t")
    assert jobs.reads == []


RESERVED = "event/order.placed/7"


def test_a_reserved_key_of_a_caller_is_apart_from_events_batches_and_flows() -> None:
    jobs = Jobs()
    accepted = submit_to(jobs)(a_submission(key=RESERVED), tenant=TENANT, trace="t")
    assert (accepted.job.id, accepted.replayed) == (submitted_job_id(TENANT, RESERVED), False)
    assert jobs.reads == []


def test_without_what_supersedes_or_debounces_neither_is_possible() -> None:
    for asked, path in (({"supersedes": "k"}, "/supersedes"), ({"debounce": SECOND}, "/debounce_seconds")):
        with pytest.raises(InvalidPayloadError) as refused:
            submit_to(Jobs())(a_submission(**asked), tenant=TENANT, trace="t")
        assert [(fault.path, fault.message) for fault in refused.value.faults] == [(path, "is not possible here")]


@pytest.mark.parametrize(("part", "asked"), [("supersede", {"supersedes": "k"}), ("debounce", {"debounce": SECOND})])
def test_what_supersedes_or_debounces_gets_the_job_and_gives_the_answer(part: str, asked: dict[str, Any]) -> None:
    jobs, got = Jobs(), []

    def insert(job: Job) -> Accepted:
        got.append(job)
        return Accepted(job=job, replayed=True)

    answer = submit_to(jobs, **{part: insert})(a_submission(**asked), tenant=TENANT, trace="t")

    assert (answer, jobs.writes) == (Accepted(job=got[0], replayed=True), [])
    assert submit_to(jobs, **{part: insert})(a_submission(), tenant=TENANT, trace="t").job not in got


BATCH = a_job(id="b", type=BATCH_TYPE, state=State.PARKED)
JOINING = a_submission(key="k", batch="b")
CLOSED_BATCH = with_changes(BATCH, signals=(Signal(name=CLOSED, at=NOW, data="null"),))


@pytest.mark.parametrize("expires", [None, NOW + SECOND])
def test_a_job_joins_an_open_batch_with_its_write(expires: Any) -> None:
    jobs = Jobs(with_changes(BATCH, expires_at=expires))
    accepted = submit_to(jobs)(JOINING, tenant=TENANT, trace="t")
    assert (accepted.replayed, accepted.job.batch, jobs.writes) == (False, "b", [("insert", accepted.job.id, "b")])


@pytest.mark.parametrize(
    ("batch", "error", "says"),
    [
        (None, InvalidPayloadError, "you have no batch with this id"),
        (replace(BATCH, tenant="other"), InvalidPayloadError, "you have no batch with this id"),
        (replace(BATCH, type="test.job"), InvalidPayloadError, "you have no batch with this id"),
        (with_changes(BATCH, expires_at=NOW), InvalidPayloadError, "you have no batch with this id"),
        (CLOSED_BATCH, BatchRefusedError, "the batch b is closed"),
        (replace(BATCH, state=State.CANCELLED), BatchRefusedError, "the batch b is cancelled"),
        (replace(BATCH, created_at=NOW - timedelta(days=400)), BatchRefusedError, "the batch b is closed"),
    ],
)
def test_a_batch_that_takes_no_more_refuses_new_jobs_alone(batch: Job | None, error: Any, says: str) -> None:
    others = [batch] if batch else []
    jobs = Jobs(*others)
    with pytest.raises(error, match=says):
        submit_to(jobs)(JOINING, tenant=TENANT, trace="t")
    assert jobs.writes == []
    first = made_by(JOINING)
    again = submit_to(Jobs(first, *others))(JOINING, tenant=TENANT, trace="t")
    assert again == Accepted(job=first, replayed=True)


CONFLICT, CLOSED_NOW = TransactionConflictError("busy"), BatchRefusedError("closed")


@pytest.mark.parametrize(
    ("asked", "refusal", "raised", "later"),
    [
        # The first send may have been applied, and its job run already, or may be applied yet.
        ({}, CONFLICT, CONFLICT, True),
        ({"group": "a"}, CONFLICT, CONFLICT, True),
        ({"batch": "b"}, CONFLICT, CONFLICT, True),
        ({"batch": "b"}, CLOSED_NOW, CLOSED_NOW, False),
        ({}, WriteRefusedError("insert", None), WriteRefusedError, False),
        ({}, WriteRefusedError("insert", made_by(KEYED)), None, False),
    ],
)
@pytest.mark.parametrize("undeletable", [True, False])
def test_a_refused_write_deletes_the_payload_later_if_the_job_may_be_written(
    undeletable: bool, asked: dict[str, Any], refusal: Exception, raised: Any, later: bool
) -> None:
    jobs = Jobs(BATCH, apart=True)
    jobs.refusals, jobs.undeletable = [refusal], undeletable

    def insert() -> Accepted:
        return submit_to(jobs)(replace(KEYED, **asked), tenant=TENANT, trace="t")

    if raised is None:
        assert insert() == Accepted(job=made_by(KEYED), replayed=True)
    else:
        with pytest.raises(raised if isinstance(raised, type) else type(raised)):
            insert()
    assert (jobs.deleted, jobs.later) == (([], ["apart"]) if later else (["apart"], []))
