"""The purge use case: the plan, the deletion, and the advance of groups."""

from datetime import datetime

import pytest

from tests.support.builders import (
    NOW,
    SECOND,
    SETTLEMENTS,
    a_job,
    brought_to,
    claimed,
    fresh_token,
    stored,
    with_changes,
)
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.control.purge import Purger
from tidemill.application.ports import JobStore
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.flows.flow_place import FlowPlace
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW + SECOND)


@pytest.fixture
def purger(store: JobStore, clock: Clock) -> Purger:
    return Purger(store=store, clock=clock)


def test_a_purged_job_is_deleted_and_may_be_purged_again(purger: Purger, store: JobStore) -> None:
    ended = brought_to(store, State.SUCCEEDED)

    assert [purger.purge(ended), purger.purge(ended)] == [True, True]
    assert store.get(ended.tenant, ended.id) is None


def test_a_job_that_was_redriven_since_it_was_planned_stays(purger: Purger, store: JobStore) -> None:
    planned_job = brought_to(store, State.DEAD)
    queued = store.redrive(planned_job, token="a redrive", now=NOW, by="ada")

    assert not purger.purge(planned_job)
    assert stored(store, planned_job) == queued


def test_a_group_that_a_dead_job_blocked_advances_when_it_is_purged(purger: Purger, store: JobStore) -> None:
    group = fresh_token()
    store.insert_if_absent(head := a_job(group=group, blocks=True))
    behind = store.insert_if_absent(a_job(group=group, blocks=True))
    store.settle(claimed(store, head), SETTLEMENTS[State.DEAD], now=NOW)
    assert store.advance(head.tenant, group, now=NOW) is None

    assert purger.purge(stored(store, head))

    assert stored(store, behind).state is State.QUEUED


def test_a_purge_of_an_ended_head_advances_its_group_once(purger: Purger, store: JobStore) -> None:
    head = brought_to(store, State.QUEUED, group="a group")
    waiting = store.insert_if_absent(a_job(group="a group"))

    purger.purge(store.cancel(head, now=NOW))

    assert stored(store, waiting).state is State.QUEUED


def test_a_job_is_purged_also_before_a_job_of_its_group_that_is_unreadable(
    purger: Purger, store: JobStore, table: Table
) -> None:
    head = brought_to(store, State.QUEUED, group="a group")
    behind = store.insert_if_absent(a_job(group="a group"))
    ended = store.cancel(head, now=NOW)
    table.put(behind, schema={"N": "99"})

    assert purger.purge(ended)
    assert store.get(ended.tenant, ended.id) is None


def test_the_purge_of_a_job_without_a_group_advances_none(clock: Clock) -> None:
    class Store:
        def forget(self, job: Job) -> None:
            """Deletes it."""

    assert Purger(store=Store(), clock=clock).purge(a_job(state=State.DEAD))  # type: ignore[arg-type]  # no `advance`


FLOW = a_job(id="flow")
NODE = a_job(id="ended", state=State.SUCCEEDED, flow=FlowPlace(id="flow", node="n"))


class Read:
    """`PurgeStore` that reads."""

    def __init__(self, *jobs: Job | Exception) -> None:
        self.jobs = {job.id: job for job in jobs if isinstance(job, Job)}
        self.error = next((each for each in jobs if isinstance(each, Exception)), None)
        self.asked: list[str] = []

    def get(self, tenant: str, job_id: str) -> Job | None:
        assert tenant == NODE.tenant
        self.asked.append(job_id)
        if self.error:
            raise self.error
        return self.jobs.get(job_id)


def without_needed(store: Read, *jobs: Job) -> tuple[list[Job], list[Job]]:
    """Those that may be purged, and those that are kept."""
    kept: list[Job] = []
    purger = Purger(store=store, clock=lambda: NOW)  # type: ignore[arg-type]  # it only reads
    return list(purger.without_needed(jobs, kept=kept.append)), kept


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize(
    "job",
    [
        NODE,
        replace(NODE, flow=None, batch="flow"),
        with_changes(NODE, flow=None, superseded_by="flow"),
        with_changes(NODE, flow=None, undone=Undone(job_id="flow", at=NOW, by="ada", reason="")),
    ],
)
def test_a_job_is_kept_while_one_that_needs_it_is_live_or_dead(job: Job, state: State) -> None:
    needed = not state.terminal or state is State.DEAD

    assert without_needed(Read(replace(FLOW, state=state)), job) == (([], [job]) if needed else ([job], []))


def test_a_job_is_purged_if_what_needed_it_is_gone_or_has_expired() -> None:
    assert without_needed(Read(), NODE) == ([NODE], [])
    assert without_needed(Read(with_changes(FLOW, state=State.DEAD, expires_at=NOW)), NODE) == ([NODE], [])


def test_a_job_is_kept_while_only_a_newer_version_can_read_what_may_need_it() -> None:
    assert without_needed(Read(MalformedDocumentError("schema 99")), NODE) == ([], [NODE])


@pytest.mark.parametrize(("until", "needed"), [(NOW, False), (NOW + SECOND, True)])
def test_a_unique_job_is_kept_until_its_period_ends(until: datetime, *, needed: bool) -> None:
    job = with_changes(NODE, flow=None, unique_until=until)

    assert without_needed(Read(), job) == (([], [job]) if needed else ([job], []))


UNDO = a_job(id="undo", state=State.SUCCEEDED, undoes="ended")


@pytest.mark.parametrize("state", list(State))
def test_an_undo_is_kept_while_a_correction_of_the_undone_job_is_live_or_dead(state: State) -> None:
    needed = not state.terminal or state is State.DEAD
    # The correction is still to look at the undo when the retention of the undone job is over.
    undone = with_changes(NODE, flow=None, superseded_by="flow", expires_at=NOW)
    store = Read(undone, replace(FLOW, state=state))

    assert without_needed(store, UNDO) == (([], [UNDO]) if needed else ([UNDO], []))
    assert store.asked == ["ended", "flow"]


def test_an_undo_is_purged_if_nothing_corrects_the_undone_job() -> None:
    assert without_needed(Read(replace(NODE, flow=None)), UNDO) == ([UNDO], [])


def test_an_undo_of_a_job_of_which_nothing_is_left_is_kept() -> None:
    assert without_needed(Read(), UNDO) == ([], [UNDO])


def test_an_undo_is_kept_while_only_a_newer_version_can_read_the_undone_job() -> None:
    assert without_needed(Read(MalformedDocumentError("schema 99")), UNDO) == ([], [UNDO])


def test_each_flow_is_read_once() -> None:
    store = Read(FLOW)

    assert without_needed(store, NODE, replace(NODE, id="two"))[0] == []
    assert store.asked == ["flow"]
