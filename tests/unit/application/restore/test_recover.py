"""The recovery of a restored table in memory: what it writes for each job, what it reports, and how it goes on."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, TENANT, a_job, with_changes
from tidemill.application.passes.pace import Pace
from tidemill.application.ports import OpenGroup, UnreadableItem
from tidemill.application.restore.recover import (
    Fate,
    Page,
    Recovered,
    Recoverer,
    Recovery,
    counts,
    missing,
    pages,
    ran_since,
    recovery_of,
)
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.errors import MalformedDocumentError, WriteRefusedError
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Signal
from tidemill.names import FLOW_TYPE

LATER = NOW + 5 * SECOND
RECOVERY = Recovery(epoch=3, table="restored", began_at=NOW, replaces="jobs")


class Paces(Pace):
    def __init__(self) -> None:
        super().__init__(1, clock=lambda: NOW, pause=lambda _seconds: None)
        self.spent: list[tuple[float, timedelta]] = []

    def spend(self, units: float, *, within: timedelta) -> bool:
        self.spent.append((units, within))
        return True


class Writes:
    """`RecoverStore` that notes its writes, or raises `error` at each."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.made: list[tuple[Any, ...]] = []

    def resend(self, job: Job, *, now: datetime) -> None:
        self._note("resend", job.id, now)

    def release(self, job: Job, *, now: datetime, due: datetime, cause: Why) -> None:
        self._note("release", job.id, now, due, cause)

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        self._note("advance", tenant, group, now)
        return None

    def _note(self, *write: Any) -> None:
        if self.error:
            raise self.error
        self.made.append(write)


Found = Job | OpenGroup | UnreadableItem


def reading(*found: Found) -> Callable[[str | None], Page]:
    return lambda _cursor: Page(found=found, cursor=None, read_units=1.0)


def recovered(
    *found: Found,
    store: Writes,
    former: Callable[[Sequence[tuple[str, str]]], Sequence[Job]] | None,
    change: bool = True,
) -> list[Recovered]:
    recoverer = Recoverer(
        store=store, former=former, recovery=RECOVERY, clock=lambda: LATER, pace=Paces(), change=change
    )
    return list(recoverer.run(reading(*found)))


RESEND = [("resend", "job", LATER)]
RELEASE = [("release", "job", LATER, LATER, Why.RESTORED)]
FATES = [
    (State.QUEUED, Fate.DISPATCHED, RESEND),
    (State.RETRYING, Fate.DISPATCHED, RESEND),
    (State.RUNNING, Fate.GIVEN_BACK, RELEASE),
    (State.DEAD, Fate.DEAD, RESEND),
    (State.WAITING, Fate.WAITS, []),
    (State.SCHEDULED, Fate.WAITS, []),
    (State.PARKED, Fate.WAITS, []),
]


@pytest.mark.parametrize(("state", "fate", "writes"), FATES)
@pytest.mark.parametrize("change", [True, False])
def test_a_restored_job_is_dispatched_as_its_state_needs_and_reported(
    state: State, fate: Fate, writes: list[Any], change: bool
) -> None:
    job, store = a_job(id="job", state=state), Writes()

    report = recovered(job, store=store, former=lambda _keys: [job], change=change)

    assert report == [
        Recovered(
            tenant=TENANT,
            job_id="job",
            type="test.job",
            state=state,
            fate=fate,
            may_run_again=state is State.RUNNING,
        )
    ]
    assert store.made == (writes if change else [])


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.CANCELLED, State.EXPIRED])
def test_nothing_is_dispatched_for_a_job_that_has_ended(state: State) -> None:
    store, asked = Writes(), list[Any]()

    def former(keys: Sequence[tuple[str, str]]) -> Sequence[Job]:
        asked.extend(keys)
        return ()

    [report] = recovered(a_job(state=state), store=store, former=former)

    assert (report.fate, report.may_run_again, store.made, asked) == (Fate.WAITS, False, [], [])


def restored(at: datetime) -> Transition:
    return Transition(at=at, state="queued", cause=Why.RESTORED)


@pytest.mark.parametrize(
    ("changes", "done"),
    [
        ({}, False),
        ({"nudged_at": NOW - MILLISECOND}, False),
        ({"nudged_at": NOW}, True),
        ({"history": (restored(NOW - MILLISECOND),)}, False),
        ({"history": (restored(NOW), Transition(at=NOW, state="queued", cause=Why.CLAIMED))}, True),
        ({"history": (Transition(at=NOW, state="queued", cause=Why.CLAIMED),)}, False),
    ],
)
def test_a_repeated_command_passes_over_what_this_recovery_has_dispatched(changes: dict[str, Any], done: bool) -> None:
    job, store = a_job(id="job", **changes), Writes()
    recovered(job, store=store, former=None)
    assert store.made == ([] if done else RESEND)


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.DEAD])
def test_a_job_that_another_command_has_dispatched_is_reported_all_the_same(state: State) -> None:
    job = a_job(state=state)
    report = recovered(job, store=Writes(WriteRefusedError("resend", job)), former=lambda _keys: [job])
    assert [each.job_id for each in report] == [job.id]


@pytest.mark.parametrize(
    ("former", "ran"),
    [
        ({}, False),
        ({"claimed_at": LATER}, True),
        ({"created_at": LATER}, True),
        ({"claimed_at": None}, True),
        ({"attempt": 7, "state": State.SUCCEEDED}, False),
    ],
)
def test_a_job_has_run_since_the_restore_point_if_its_document_was_claimed_since_or_is_another(
    former: dict[str, Any], ran: bool
) -> None:
    job = a_job(id="job", claimed_at=NOW)
    then = a_job(**{"id": "job", "claimed_at": NOW, **former})
    assert ran_since(job, then) is ran
    [report] = recovered(job, store=Writes(), former=lambda keys: [then] if keys == [(TENANT, "job")] else [])
    assert report.may_run_again is ran


@pytest.mark.parametrize("former", [None, lambda _keys: []], ids=["no table", "no document"])
@pytest.mark.parametrize(("state", "may"), [(State.QUEUED, True), (State.PARKED, True), (State.DEAD, False)])
def test_a_job_of_which_nothing_is_known_may_run_again_unless_it_is_dead(former: Any, state: State, may: bool) -> None:
    assert ran_since(a_job(), None)
    assert [each.may_run_again for each in recovered(a_job(state=state), store=Writes(), former=former)] == [may]


def test_a_job_that_this_recovery_gave_back_may_run_again_in_the_report_of_a_repeat_too() -> None:
    job = a_job(history=(restored(NOW),))
    assert [each.may_run_again for each in recovered(job, store=Writes(), former=lambda _keys: [job])] == [True]


@pytest.mark.parametrize("change", [True, False])
def test_a_group_is_advanced_and_has_no_line_in_the_report(change: bool) -> None:
    store = Writes()
    assert recovered(OpenGroup(TENANT, "a"), store=store, former=None, change=change) == []
    assert store.made == ([("advance", TENANT, "a", LATER)] if change else [])


def test_what_cannot_be_read_is_reported_and_the_rest_is_recovered() -> None:
    broken = UnreadableItem(key="111#ada#job", error=ValueError())
    assert recovered(broken, store=Writes(), former=None) == [
        Recovered(tenant="111#ada", job_id="job", type="", state="", fate=Fate.UNREADABLE, may_run_again=False)
    ]
    store = Writes(MalformedDocumentError("no"))
    assert recovered(OpenGroup(TENANT, "a"), store=store, former=None) == [
        Recovered(tenant=TENANT, job_id="a", type="", state="", fate=Fate.UNREADABLE, may_run_again=False)
    ]


def test_the_pages_are_read_to_the_end_and_each_is_paid_for_before_the_next() -> None:
    one, two, three = (a_job() for _ in range(3))
    pace, asked = Paces(), list[str | None]()
    stored = {
        None: Page(found=[one], cursor="a", read_units=2.0),
        "a": Page(found=[], cursor="b", read_units=3.0),
        "b": Page(found=[two, three, OpenGroup(TENANT, "a")], cursor=None, read_units=4.0),
    }

    def read(cursor: str | None) -> Page:
        asked.append(cursor)
        return stored[cursor]

    assert list(pages(read, pace)) == list(stored.values())
    assert asked == [None, "a", "b"]
    assert pace.spent == [(2.0, timedelta.max), (3.0, timedelta.max)]
    # The former table has all three, the restored one has the second.
    found = list(missing(read, lambda keys: [two] if (TENANT, two.id) in keys else [], pace))
    assert found == [
        Recovered(
            tenant=TENANT, job_id=each.id, type="test.job", state="queued", fate=Fate.MISSING, may_run_again=False
        )
        for each in (one, three)
    ]


def test_a_missing_node_of_a_flow_that_is_alive_after_the_restore_may_run_again() -> None:
    flows = {name: a_job(id=name, type=FLOW_TYPE, state=state) for name, state in _FLOWS.items()}
    flows["cancelled"] = with_changes(flows["cancelled"], signals=(Signal(name=CANCELLED, at=NOW, data=""),))
    names = [*_FLOWS, "gone"]
    nodes = [a_job(id=f"of {name}", flow=FlowPlace(id=name, node="n"), state=State.SUCCEEDED) for name in names]
    marked = a_job(id="marked", flow=FlowPlace(id="waits", node="m", mark=Mark.SKIPPED), state=State.CANCELLED)
    page = Page(found=[*nodes, marked, a_job(id="alone")], cursor=None, read_units=1.0)

    def restored(keys: Sequence[tuple[str, str]]) -> list[Job]:
        return [flows[id_] for tenant, id_ in keys if tenant == TENANT and id_ in flows]

    found = {each.job_id: each.may_run_again for each in missing(lambda _cursor: page, restored, Paces())}

    expected = {f"of {name}": name in {"waits", "runs"} for name in names}
    assert found == {**expected, "marked": False, "alone": False}


_FLOWS = {
    "waits": State.SCHEDULED,
    "runs": State.RUNNING,
    "cancelled": State.QUEUED,
    "died": State.DEAD,
    "succeeded": State.SUCCEEDED,
}


def test_the_report_is_counted_by_fate_and_by_what_may_run_again() -> None:
    report = [
        Recovered(tenant="", job_id="", type="", state="", fate=fate, may_run_again=again)
        for fate, again in [(Fate.DISPATCHED, True), (Fate.DISPATCHED, False), (Fate.GIVEN_BACK, True)]
    ]
    assert counts(report) == {"dispatched": 2, "given_back": 1, "may_run_again": 2}


@pytest.mark.parametrize(
    ("found", "deployed", "epoch"),
    [
        (RECOVERY, 2, None),
        (None, 0, 1),
        (None, 2, 3),
        # The functions use the table already, so this is another recovery.
        (RECOVERY, 3, 4),
        (RECOVERY, 5, 6),
        (Recovery(epoch=3, table="other", began_at=NOW, replaces="jobs"), 2, 4),
        (Recovery(epoch=3, table="restored", began_at=NOW, replaces="other"), 2, 4),
    ],
)
def test_a_recovery_of_the_same_table_goes_on_and_any_other_has_a_higher_epoch(
    found: Recovery | None, deployed: int, epoch: int | None
) -> None:
    recovery = recovery_of(found, table="restored", replaces="jobs", deployed_epoch=deployed, now=LATER)
    if epoch is None:
        assert recovery is found
    else:
        assert recovery == Recovery(epoch=epoch, table="restored", replaces="jobs", began_at=LATER)
