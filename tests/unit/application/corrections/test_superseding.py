"""`Superseder` in memory: which jobs may be superseded, and when the job that supersedes one may run."""

from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import A_STEP, AN_UNDO, MILLISECOND, NOW, TENANT, a_job, an_undo_of, with_changes
from tests.support.one_job import Dropped
from tidemill.application.corrections.superseding import Superseder
from tidemill.application.corrections.undo import undo_id
from tidemill.application.submission.job_ids import keyed_job_id, submitted_job_id
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.validation import LONGEST_ID
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.errors import KeyReusedError, SupersedeRefusedError, UndoFailedError, WriteRefusedError
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.in_memory.single_job import Inline
from tidemill.names import BATCH_TYPE, EVENT_TYPE, FLOW_TYPE


class Jobs:
    """`SupersedeStore` that notes its writes. It refuses the first `refusals` of them."""

    def __init__(self, *jobs: Job, refusals: int = 0, ends_as: State = State.CANCELLED) -> None:
        self.jobs = {(job.tenant, job.id): job for job in jobs}
        self.refusals = refusals
        self.ends_as = ends_as
        self.writes: list[tuple[Any, ...]] = []

    def get(self, tenant: str, job_id: str) -> Job | None:
        return self.jobs.get((tenant, job_id))

    def supersede(self, earlier: Job, job: Job) -> Job:
        self._may_refuse("supersede")
        self.writes.append(("supersede", earlier.id, job.id))
        return job

    def cancel(self, job: Job, *, now: datetime, by: str, reason: str) -> Job:
        self._may_refuse("cancel")
        self.writes.append(("cancel", job.id, now, by, reason))
        return replace(job, state=self.ends_as)

    def undo(self, done: Job, job: Job, entry: Undone) -> Job:
        self._may_refuse("undo")
        self.writes.append(("undo", done.id, job, entry))
        return job

    def _may_refuse(self, write: str) -> None:
        if self.refusals:
            self.refusals -= 1
            raise WriteRefusedError(write, None)


def superseder(store: Jobs, payloads: Inline | None = None) -> Superseder:
    return Superseder(store=store, payloads=payloads or Inline(), clock=lambda: NOW)  # type: ignore[arg-type]


EARLIER = a_job(id="earlier", undo=AN_UNDO)
DONE = replace(EARLIER, state=State.SUCCEEDED)
UNDO, ENTRY = an_undo_of(DONE, id="undo")
UNDONE = with_changes(DONE, undone=ENTRY)
CORRECTION = a_job(id="correction", supersedes="earlier")


@pytest.mark.parametrize(
    ("earlier", "undo", "waits"),
    [
        *[(replace(EARLIER, state=state), None, False) for state in State if state.value in {"cancelled", "expired"}],
        *[
            (replace(EARLIER, state=state), None, False)
            for state in (State.WAITING, State.SCHEDULED, State.QUEUED, State.RETRYING, State.PARKED, State.DEAD)
        ],
        (
            replace(EARLIER, state=State.CANCELLED, flow=FlowPlace(id="f", node="n", mark=Mark.SKIPPED)),
            None,
            False,
        ),
        (replace(EARLIER, state=State.RUNNING), None, True),
        (with_changes(EARLIER, state=State.RUNNING, undo=None), None, True),
        (DONE, None, True),
        (UNDONE, replace(UNDO, state=State.SUCCEEDED), False),
        (with_changes(UNDONE, undo=None), replace(UNDO, state=State.SUCCEEDED), False),
        (UNDONE, replace(UNDO, state=State.CANCELLED), True),
        (UNDONE, replace(UNDO, state=State.EXPIRED), True),
    ],
    ids=lambda value: f"{value.state}" if isinstance(value, Job) else "",
)
def test_a_correction_waits_for_an_undo_only_if_the_earlier_job_may_have_an_effect(
    earlier: Job, undo: Job | None, waits: bool
) -> None:
    store = Jobs(earlier, *([undo] if undo else []))

    accepted = superseder(store).accept(CORRECTION)

    expected = with_changes(CORRECTION, supersedes="earlier", after_undo=undo_id(earlier) if waits else None)
    assert accepted == Accepted(job=expected, replayed=False)
    assert store.writes == [("supersede", "earlier", "correction")]


LATER = a_job(id="later")
CORRECTED = with_changes(EARLIER, superseded_by="later")


@pytest.mark.parametrize(
    ("job", "others", "refusal"),
    [
        (with_changes(CORRECTION, supersedes="none"), [], "you have no job with the key or id none"),
        (with_changes(CORRECTION, supersedes=None), [], "you have no job with the key or id ,"),
        (
            with_changes(CORRECTION, supersedes="x" * (LONGEST_ID + 1)),
            [a_job(id="x" * (LONGEST_ID + 1))],
            "you have no job with the key",
        ),
        (with_changes(CORRECTION, supersedes="old"), [a_job(id="old", expires_at=NOW)], "you have no job with the key"),
        (CORRECTION, [CORRECTED, LATER], "job later supersedes job earlier already"),
        (CORRECTION, [CORRECTED, replace(LATER, state=State.DEAD)], "job later supersedes job earlier already"),
        (CORRECTION, [with_changes(CORRECTED, undone=ENTRY)], "job later superseded job earlier and has been deleted"),
        (CORRECTION, [replace(CORRECTED, state=State.CANCELLED)], "job later superseded job earlier and has been"),
        (CORRECTION, [with_changes(EARLIER, group="a")], "is of the group a; the job that supersedes it must be, too"),
        (
            with_changes(CORRECTION, group="b"),
            [with_changes(EARLIER, group="a")],
            "is of the group a; the job that supersedes",
        ),
        (CORRECTION, [with_changes(EARLIER, undoes="first")], "undoes job first, so it cannot be superseded"),
        *[
            (CORRECTION, [replace(EARLIER, type=whole)], f"job earlier is a {whole}, whose jobs have the effects")
            for whole in (BATCH_TYPE, FLOW_TYPE, EVENT_TYPE)
        ],
        (
            CORRECTION,
            [replace(EARLIER, state=State.CANCELLED, flow=FlowPlace(id="f", node="n", mark=Mark.BLOCKED))],
            "job earlier is a node of the flow f that is blocked, and would start after a redrive; cancel the flow",
        ),
        *[
            (
                CORRECTION,
                [with_changes(EARLIER, steps=(A_STEP, replace(A_STEP, name="ship")), state=state)],
                f"job earlier is {state} and recorded the steps charge, ship, which nothing undoes",
            )
            for state in State
            if state not in {State.SUCCEEDED, State.WAITING}
        ],
        (
            CORRECTION,
            [with_changes(EARLIER, dropped_steps=("ship",), steps=(A_STEP,))],
            "job earlier recorded the steps ship, charge, some with a payload that a redrive replaced, which nothing",
        ),
        (
            CORRECTION,
            [with_changes(DONE, dropped_steps=("ship",))],
            "job earlier recorded the steps ship, some with a payload that a redrive replaced, which nothing undoes",
        ),
        (
            CORRECTION,
            [with_changes(EARLIER, supersedes="first")],
            "job earlier is queued, and supersedes job first itself",
        ),
        (CORRECTION, [UNDONE], "job earlier was undone by job undo, which has been deleted"),
        (CORRECTION, [UNDONE, UNDO], "job earlier is undone by job undo, which is queued"),
        (CORRECTION, [UNDONE, replace(UNDO, state=State.DEAD)], "job earlier is undone by job undo, which is dead"),
        (CORRECTION, [with_changes(DONE, undo=None)], "job earlier has succeeded and recorded no undo"),
        (CORRECTION, [with_changes(UNDONE, undo=None), replace(UNDO, state=State.CANCELLED)], "and recorded no undo"),
    ],
)
def test_a_correction_that_cannot_come_about_is_refused_with_its_reason(
    job: Job, others: list[Job], refusal: str
) -> None:
    store = Jobs(*others)

    with pytest.raises(SupersedeRefusedError, match=refusal):
        superseder(store).accept(job)

    assert store.writes == []


def test_a_job_cannot_supersede_itself() -> None:
    # The job of its key ends its retention between the two reads.
    times = iter([NOW, NOW - MILLISECOND, NOW - MILLISECOND])
    job = a_job(id=keyed_job_id(TENANT, "key"), supersedes="key", expires_at=NOW)
    asked = Superseder(store=Jobs(job), payloads=Inline(), clock=lambda: next(times))  # type: ignore[arg-type]

    with pytest.raises(SupersedeRefusedError, match="a job cannot supersede itself"):
        asked.accept(job)


@pytest.mark.parametrize(
    ("job", "others"),
    [
        (CORRECTION, [CORRECTED, replace(LATER, state=State.CANCELLED)]),
        (CORRECTION, [CORRECTED, replace(LATER, state=State.EXPIRED)]),
        (CORRECTION, [replace(CORRECTED, state=State.CANCELLED), replace(LATER, state=State.CANCELLED)]),
        (
            CORRECTION,
            [
                with_changes(UNDONE, superseded_by="later"),
                replace(LATER, state=State.EXPIRED),
                replace(UNDO, state=State.SUCCEEDED),
            ],
        ),
        (CORRECTION, [replace(CORRECTED, state=State.RUNNING)]),
        (with_changes(CORRECTION, group="a"), [with_changes(EARLIER, group="a")]),
        (with_changes(CORRECTION, group="a"), [EARLIER]),
        (CORRECTION, [with_changes(DONE, supersedes="first")]),
        (with_changes(CORRECTION, supersedes="x" * LONGEST_ID), [a_job(id="x" * LONGEST_ID)]),
        (CORRECTION, [with_changes(EARLIER, expires_at=NOW + MILLISECOND)]),
        (with_changes(CORRECTION, supersedes="key"), [a_job(id=keyed_job_id(TENANT, "key"))]),
        (with_changes(CORRECTION, supersedes="event/1"), [a_job(id=submitted_job_id(TENANT, "event/1"))]),
        (with_changes(CORRECTION, supersedes="event/1"), [a_job(id=keyed_job_id(TENANT, "event/1"))]),
    ],
)
def test_a_correction_of_a_job_with_this_key_or_id_is_accepted(job: Job, others: list[Job]) -> None:
    store = Jobs(*others)

    accepted = superseder(store).accept(job)

    assert accepted.job.correction.supersedes == others[0].id
    assert store.writes == [("supersede", others[0].id, "correction")]


def test_a_key_is_found_before_an_id_and_the_key_of_a_caller_before_that_of_an_event() -> None:
    own, of_event = (a_job(id=name(TENANT, "event/1")) for name in (submitted_job_id, keyed_job_id))
    jobs = [own, of_event, a_job(id="event/1")]

    for position, expected in enumerate(jobs):
        accepted = superseder(Jobs(*jobs[position:])).accept(with_changes(CORRECTION, supersedes="event/1"))
        assert accepted.job.correction.supersedes == expected.id


def test_a_correction_is_tried_again_when_the_earlier_job_has_changed_meanwhile() -> None:
    store, payloads = Jobs(EARLIER, refusals=2), Dropped()

    accepted = superseder(store, payloads).accept(CORRECTION)

    assert (accepted.replayed, store.writes) == (False, [("supersede", "earlier", "correction")])
    # One of each refused try.
    assert payloads.deleted == ["correction", "correction"]


@pytest.mark.parametrize(
    "known", [replace(CORRECTION, trace="other"), replace(CORRECTION, created_at=NOW - MILLISECOND)]
)
def test_a_correction_that_was_accepted_before_is_answered_with_its_job(known: Job) -> None:
    store = Jobs(EARLIER, known)
    assert superseder(store).accept(CORRECTION) == Accepted(job=known, replayed=True)
    assert store.writes == []

    with pytest.raises(KeyReusedError):
        superseder(store).accept(replace(CORRECTION, body_hash="other"))


@pytest.mark.parametrize("change", [{"trace": "other"}, {"created_at": NOW - MILLISECOND}])
def test_a_write_that_finds_the_job_of_another_submission_is_a_replay(change: dict[str, Any]) -> None:
    class Earlier(Jobs):
        def supersede(self, earlier: Job, job: Job) -> Job:
            del earlier
            return with_changes(job, payload_at="elsewhere", **change)

    payloads = Dropped()

    accepted = superseder(Earlier(EARLIER), payloads).accept(CORRECTION)

    assert accepted.replayed
    assert payloads.deleted == ["correction"]


CLAIMED = with_changes(CORRECTION, after_undo="undo", state=State.RUNNING)
SEEN = with_changes(EARLIER, superseded_by="correction")
CANCELLED = [("cancel", "earlier", NOW, "owner", "superseded by job correction")]


@pytest.mark.parametrize(
    ("job", "others", "ready", "writes"),
    [
        (with_changes(CLAIMED, after_undo=None), [], True, []),
        (CLAIMED, [replace(SEEN, state=State.CANCELLED)], True, []),
        (CLAIMED, [replace(SEEN, state=State.EXPIRED)], True, []),
        (CLAIMED, [SEEN], True, CANCELLED),
        (CLAIMED, [replace(SEEN, state=State.DEAD)], True, CANCELLED),
        (CLAIMED, [with_changes(UNDONE, superseded_by="correction"), UNDO], False, []),
        (CLAIMED, [with_changes(UNDONE, superseded_by="correction"), replace(UNDO, state=State.SUCCEEDED)], True, []),
        # Its document was deleted, or is that of another job.
        (CLAIMED, [replace(UNDO, state=State.SUCCEEDED)], True, []),
        (CLAIMED, [with_changes(SEEN, expires_at=NOW), replace(UNDO, state=State.SUCCEEDED)], True, []),
        (CLAIMED, [EARLIER, replace(UNDO, state=State.SUCCEEDED)], True, []),
        (CLAIMED, [UNDO], False, []),
        (CLAIMED, [replace(UNDO, state=State.RUNNING)], False, []),
    ],
)
def test_a_correction_runs_once_the_earlier_job_has_no_effect(
    job: Job, others: list[Job], ready: bool, writes: list[Any]
) -> None:
    store = Jobs(*others)
    assert superseder(store).ready(job) is ready
    assert store.writes == writes


def test_a_correction_waits_for_a_run_that_was_only_asked_to_end() -> None:
    store = Jobs(replace(SEEN, state=State.RUNNING), ends_as=State.RUNNING)
    assert not superseder(store).ready(CLAIMED)
    assert store.writes == CANCELLED


@pytest.mark.parametrize("undone", [None, replace(ENTRY, job_id="an earlier undo")])
def test_the_claim_of_a_correction_undoes_a_success_in_its_own_turn_of_the_group(undone: Undone | None) -> None:
    done = with_changes(DONE, superseded_by="correction", undone=undone, group="a")
    store = Jobs(done)

    assert not superseder(store).ready(CLAIMED)

    [(_, name, job, entry)] = store.writes
    assert (name, job.id, job.correction.undoes, job.group.key, job.created_at) == (
        "earlier",
        undo_id(done),
        "earlier",
        None,
        NOW,
    )
    assert entry == Undone(job_id=job.id, at=NOW, by="owner", reason="superseded by job correction")


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        (
            [with_changes(DONE, undo=None, superseded_by="correction")],
            "job earlier, which it supersedes, recorded no undo",
        ),
        *[
            (
                [with_changes(SEEN, state=state, steps=(A_STEP,))],
                f"job earlier, which it supersedes, is {ended} and recorded the steps charge; undo what they did",
            )
            for state, ended in (
                (State.EXPIRED, "expired"),
                (State.CANCELLED, "cancelled"),
                (State.RETRYING, "cancelled"),
            )
        ],
        (
            [with_changes(SEEN, state=State.SUCCEEDED, undo=AN_UNDO, dropped_steps=("book",))],
            "job earlier, which it supersedes, is succeeded and recorded the steps book; undo what they did",
        ),
        ([], "job earlier, which it supersedes, or its undo has been deleted"),
        ([replace(UNDO, state=State.CANCELLED)], "job undo, which undoes job earlier, is cancelled; discard this job"),
        ([replace(UNDO, state=State.EXPIRED)], "job undo, which undoes job earlier, is expired; discard this job"),
        ([replace(UNDO, state=State.DEAD)], "job undo, which undoes job earlier, is dead; redrive that one, then this"),
    ],
)
def test_a_correction_fails_if_the_undo_will_never_come_about(others: list[Job], reason: str) -> None:
    with pytest.raises(UndoFailedError, match=reason):
        superseder(Jobs(*others)).ready(CLAIMED)


@pytest.mark.parametrize(("refusals", "ready"), [(4, True), (5, False)])
def test_a_claim_looks_five_times_at_an_earlier_job_that_others_change(refusals: int, ready: bool) -> None:
    store = Jobs(SEEN, refusals=refusals)
    assert superseder(store).ready(CLAIMED) is ready
    assert len(store.writes) == ready


def test_the_payload_of_an_undo_that_was_refused_is_deleted() -> None:
    payloads = Dropped()
    done = with_changes(DONE, superseded_by="correction")
    assert not superseder(Jobs(done, refusals=1), payloads).ready(CLAIMED)
    assert payloads.deleted == [undo_id(done)]
