"""Looks of flows while others keep more groups busy than a look has time for."""

import pytest

from tests.support.builders import NOW, SECOND, with_changes
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows
from tidemill.application.flows import flow_look
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.flows.flow_graph import LAST
from tidemill.domain.job import Job, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State

_BUSY = [{"name": f"busy{number}", "group": f"g{number}"} for number in range(30)]


class Busy(InMemoryFlows):
    """Others keep the groups of the nodes busy whose names begin so."""

    tried = 0
    released = False

    def insert_if_absent(self, job: Job, *, batch: Job | None = None) -> Job:
        self._refuse(job)
        return super().insert_if_absent(job, batch=batch)

    def redrive(self, job: Job, **_audit: object) -> Job:
        self._refuse(job)
        return super().redrive(job)

    def looks_again(self) -> flow_look.Looked:
        """Each run of a flow has another generation."""
        self.documents[FLOW_ID] = replace(self.flow, generation=self.flow.generation + 1)
        return self.look_at_all()

    def _refuse(self, job: Job) -> None:
        if job.flow and job.flow.node.startswith("busy") and job.group.key and not self.released:
            self.tried += 1
            raise TransactionConflictError("others write the group")


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_look, "_MOST_BUSY", 8)


def _dead(flows: Busy) -> None:
    """Each node that has begun has died, and the flow was redriven."""
    for job in [each for each in flows.documents.values() if each.flow and not each.state.terminal]:
        flows.documents[job.id] = replace(job, state=State.DEAD, finished_at=NOW, due=None)
    flows.documents[FLOW_ID] = replace(flows.flow, redrives=(Redrive(token="t", at=NOW + SECOND, by="owner"),))


def test_a_look_tries_some_busy_groups_and_waits_for_the_others() -> None:
    flows = Busy(_BUSY)
    looked = flows.look_at_all()
    assert (looked.again, looked.busy, flows.tried) == (False, True, 8)
    assert LAST not in flows.moved, "the flow cannot have ended"


def test_no_number_of_busy_groups_keeps_a_node_of_a_free_group_from_its_start() -> None:
    flows = Busy([*_BUSY, {"name": "free", "group": "h"}])
    looks = 0
    while "free" not in flows.states():
        flows.looks_again()
        looks += 1
        assert looks < 30


def test_a_node_without_a_group_starts_before_those_of_groups() -> None:
    flows = Busy([*_BUSY, {"name": "free"}])
    flows.look_at_all()
    assert flows.states() == {"free": "queued"}


def test_a_node_is_skipped_beside_any_number_of_busy_groups() -> None:
    skipped = {"name": "skipped", "after": [{"node": "free", "on_failure": "skip"}]}
    flows = Busy([*_BUSY, {"name": "free"}, skipped])
    flows.look_at_all()
    flows.end("free", State.DEAD)
    flows.looks_again()
    assert flows.states()["skipped"] == "skipped"


def test_a_redrive_of_any_number_of_busy_groups_keeps_no_node_from_its_start() -> None:
    flows = Busy([*_BUSY, {"name": "free"}])
    flows.released = True
    flows.look_at_all()
    del flows.documents[next(job.id for job in flows.documents.values() if job.flow and job.flow.node == "free")]
    _dead(flows)
    flows.released = False
    looked = flows.looks_again()
    assert flows.states()["free"] == "queued"
    assert (looked.again, looked.busy, flows.tried) == (False, True, 8)


def test_nodes_of_one_group_are_redriven_in_its_order() -> None:
    flows, redriven = Busy([{"name": name, "group": "g"} for name in "abc"]), list[str]()
    flows.look_at_all()
    _dead(flows)
    for place, name in enumerate("cab", 1):
        job = flows.node(name)
        assert job
        flows.documents[job.id] = with_changes(job, sequence=place)
    redrive = flows.redrive

    def noted(job: Job, **audit: object) -> Job:
        redriven.append(job.flow.node if job.flow else "")
        return redrive(job, **audit)

    flows.redrive = noted  # type: ignore[method-assign]
    flows.looks_again()
    assert redriven == ["c", "a", "b"]
