"""`Undoer` in memory: which jobs can be undone, how often, and the job that does it."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import AN_UNDO, NOW, TENANT, a_job, an_undo_of, with_changes
from tests.support.one_job import Dropped
from tidemill.application.corrections.undo import Undoer, undo_id, undo_job
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.corrections.undo import Correction, Undone
from tidemill.domain.errors import SubmissionPausedError, UndoRefusedError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.job_parts import GroupPlace, Lifetime, StoredPayload
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.in_memory.single_job import Inline


class Jobs:
    """`UndoStore` that notes its writes. It refuses the first `refusals` of them."""

    def __init__(self, *jobs: Job, refusals: int = 0) -> None:
        self.jobs = {(job.tenant, job.id): job for job in jobs}
        self.refusals = refusals
        self.writes: list[tuple[str, Undone]] = []

    def find(self, tenant: str, job_id: str) -> Job | None:
        return self.jobs.get((tenant, job_id))

    def undo(self, done: Job, job: Job, entry: Undone) -> Job:
        if self.refusals:
            self.refusals -= 1
            raise WriteRefusedError("undo", done)
        self.writes.append((done.id, entry))
        return job


def undoer(store: Jobs, payloads: Inline | None = None) -> Undoer:
    return Undoer(store=store, payloads=payloads or Inline(), clock=lambda: NOW, find=store.find)


DONE = a_job(id="done", state=State.SUCCEEDED, undo=AN_UNDO, group="a", trace="of the request")
UNDO, ENTRY = an_undo_of(DONE, id="undo")
UNDONE = with_changes(DONE, undone=ENTRY)


@pytest.mark.parametrize("max_age", [None, timedelta(minutes=5)])
@pytest.mark.parametrize("retention", [None, timedelta(days=2)])
@pytest.mark.parametrize(("group", "blocks"), [("a", True), (None, False)])
def test_the_undo_is_a_job_of_the_tenant_as_the_handler_recorded_it(
    group: str | None, blocks: bool, retention: timedelta | None, max_age: timedelta | None
) -> None:
    later = NOW + timedelta(hours=1)
    job = undo_job(DONE, replace(AN_UNDO, retention=retention, max_age=max_age), now=later, group=group)

    expected = Job(
        tenant=TENANT,
        id=undo_id(DONE),
        type=AN_UNDO.type,
        lane=AN_UNDO.lane,
        payload=StoredPayload(text=AN_UNDO.payload),
        body_hash=job.body_hash,
        trace="of the request",
        state=State.QUEUED,
        generation=1,
        attempt=0,
        created_at=later,
        due=later,
        lifetime=Lifetime(useful_until=later + max_age if max_age else None, retention=retention),
        group=GroupPlace(key=group, blocks=blocks),
        tags=AN_UNDO.tags,
        correction=Correction(undoes="done"),
    )
    assert job == expected
    assert not undo_job(DONE, replace(AN_UNDO, blocks=False), now=later, group=group).group.blocks
    assert job.body_hash != undo_job(replace(DONE, id="other"), AN_UNDO, now=later, group=None).body_hash


@pytest.mark.parametrize(
    "other",
    [
        replace(DONE, tenant="other"),
        replace(DONE, id="other"),
        replace(DONE, created_at=NOW + timedelta(seconds=1)),
        UNDONE,
        with_changes(DONE, undone=replace(ENTRY, job_id="another")),
    ],
)
def test_each_undo_of_each_job_has_an_id_of_its_own(other: Job) -> None:
    assert undo_id(DONE) == undo_id(replace(DONE, trace="other"))
    assert undo_id(DONE) != undo_id(other)


@pytest.mark.parametrize(
    "jobs",
    [
        [DONE],
        [UNDONE, replace(UNDO, state=State.CANCELLED)],
        [UNDONE, replace(UNDO, state=State.EXPIRED)],
        [with_changes(DONE, superseded_by="later")],
        [with_changes(DONE, superseded_by="later"), a_job(id="later", state=State.CANCELLED)],
        [with_changes(DONE, superseded_by="later"), a_job(id="later", state=State.EXPIRED)],
    ],
)
def test_a_success_without_an_undo_that_has_an_effect_is_undone_behind_its_group(jobs: list[Job]) -> None:
    store = Jobs(*jobs)
    expected = undo_job(jobs[0], AN_UNDO, now=NOW, group="a")

    accepted = undoer(store)(TENANT, "done", by="ada", reason="a typo")

    assert accepted == Accepted(job=expected, replayed=False)
    assert store.writes == [("done", Undone(job_id=expected.id, at=NOW, by="ada", reason="a typo"))]


def test_an_undo_names_the_owner_unless_another_is_given() -> None:
    store = Jobs(DONE)
    undoer(store)(TENANT, "done")
    assert [(entry.by, entry.reason) for _, entry in store.writes] == [("owner", "")]


@pytest.mark.parametrize("state", sorted(set(State) - {State.CANCELLED, State.EXPIRED}))
@pytest.mark.parametrize("more", [{}, {"superseded_by": "later"}, {"undo": None}])
def test_a_second_undo_gets_the_job_of_the_first(state: State, more: dict[str, Any]) -> None:
    store = Jobs(with_changes(UNDONE, **more), replace(UNDO, state=state), a_job(id="later"))
    assert undoer(store)(TENANT, "done") == Accepted(job=replace(UNDO, state=state), replayed=True)
    assert store.writes == []


@pytest.mark.parametrize(
    ("jobs", "refusal"),
    [
        *[([replace(DONE, state=state)], f"the job is {state}; only") for state in State if state != "succeeded"],
        ([with_changes(DONE, undo=None)], "the job has recorded no undo"),
        ([with_changes(DONE, undoes="first")], "the job undoes job first itself, so it cannot be undone"),
        ([UNDONE], "the job was undone by job undo, which has been deleted since"),
        (
            [with_changes(DONE, superseded_by="later"), a_job(id="later")],
            "job later, which is queued, supersedes the job",
        ),
        (
            [with_changes(DONE, superseded_by="later"), a_job(id="later", state=State.DEAD)],
            "job later, which is dead, ",
        ),
    ],
)
def test_a_job_that_cannot_be_undone_is_refused_with_its_reason(jobs: list[Job], refusal: str) -> None:
    store = Jobs(*jobs)
    with pytest.raises(UndoRefusedError, match=refusal):
        undoer(store)(TENANT, "done")
    assert store.writes == []


def test_a_job_that_is_missing_has_no_undo() -> None:
    assert undoer(Jobs())(TENANT, "done") is None


def test_a_refused_undo_is_tried_again_and_leaves_no_payload() -> None:
    store, payloads = Jobs(DONE, refusals=2), Dropped()

    accepted = undoer(store, payloads)(TENANT, "done")

    assert accepted
    assert not accepted.replayed
    assert payloads.deleted == [undo_id(DONE)] * 2


def test_a_job_that_expires_during_its_undo_has_none() -> None:
    times = iter([DONE, None, None])
    undo = Undoer(store=Jobs(refusals=1), payloads=Inline(), clock=lambda: NOW, find=lambda _tenant, _id: next(times))
    assert undo(TENANT, "done") is None


def test_an_undo_may_be_refused_and_one_that_exists_is_the_answer_all_the_same() -> None:
    def refuse(job: Job) -> Job:
        raise SubmissionPausedError(f"{job.tenant} {job.type}", timedelta(minutes=1))

    store = Jobs(DONE)
    with pytest.raises(SubmissionPausedError, match=f"{TENANT} {AN_UNDO.type}"):
        undoer(store)(TENANT, "done", admit=refuse)
    assert not store.writes

    again = undoer(Jobs(UNDONE, UNDO))(TENANT, "done", admit=refuse)
    assert again == Accepted(job=UNDO, replayed=True)
