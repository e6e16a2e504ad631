"""Looks of flows at all their nodes: what no advance has done, and what has become of the flow."""

import json
from collections.abc import Callable

import pytest

from tests.support.builders import NOW, SECOND, TENANT
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows, a_fan_in, nodes
from tests.support.one_at_a_time import OneAtATime
from tidemill.application.flows import flow_advance
from tidemill.application.flows.flow_look import FlowLook, Looked
from tidemill.application.flows.flow_nodes import NodeDocuments
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError
from tidemill.domain.flows.flow_graph import LAST, Graph
from tidemill.domain.flows.flows import Resolution
from tidemill.domain.job import Job, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State


def redriven(flows: InMemoryFlows, name: str) -> None:
    job = flows.node(name)
    assert job is not None
    asked = Redrive(token="t", at=NOW, by="ada")
    flows.documents[job.id] = replace(flows.redrive(job), redrives=(asked,))


def test_a_look_does_not_believe_that_a_node_is_blocked_whose_parent_is_alive_again() -> None:
    flows = InMemoryFlows(nodes(a=[], c=["a"], d=["c"], s=[]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    for name in ("a", "c", "d"):
        flows.advance(name)
    flows.end("s")
    redriven(flows, "a")
    looked = flows.look_at_all()
    assert (looked.at_rest, looked.again) == (False, False)
    flows.end("a")
    flows.advance("a")
    flows.end("c")
    # No advance has reached `d` yet.
    assert not flows.look_at_all().at_rest
    assert flows.states()["d"] == "queued"


def test_each_node_down_the_line_of_one_that_is_alive_again_is_pending() -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"], c=["b"], d=["c"]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    for name in ("a", "b", "c"):
        flows.advance(name)
    redriven(flows, "a")
    looked = flows.look_at_all()
    assert set(looked.resolutions) == {Resolution.PENDING}
    assert flows.states() == {"a": "queued", "b": "blocked", "c": "blocked", "d": "blocked"}


@pytest.mark.parametrize("known", [True, False])
def test_what_follows_a_blocked_node_that_starts_is_pending(known: bool) -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"], c=["b"]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    for name in ("a", "b") if known else ("a",):
        flows.advance(name)
    redriven(flows, "a")
    flows.end("a")

    looked = flows.look_at_all()

    assert looked.resolutions == [Resolution.SUCCEEDED, Resolution.PENDING, Resolution.PENDING]
    assert flows.states() == {"a": "succeeded", "b": "queued"} | ({"c": "blocked"} if known else {})


def test_a_node_that_stays_blocked_asks_for_a_look() -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"], c=["b"]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    for name in ("a", "b"):
        flows.advance(name)
    redriven(flows, "a")
    flows.end("a")
    assert flows.advance("a") == ["b"]
    flows.end("b", State.DEAD)
    flows.advance("b")
    assert flows.looks == 1


def test_the_end_of_a_redriven_node_asks_for_a_look() -> None:
    flows = InMemoryFlows(nodes(a=[], b=[{"node": "a", "on_failure": "continue"}]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    flows.advance("a")
    redriven(flows, "a")
    flows.end("b")
    looked = flows.look_at_all()
    assert (looked.at_rest, looked.again) == (False, False)
    flows.end("a")
    advance = flow_advance.FlowAdvance(flows.parts)
    advance.advance(flows.flow.tenant, FLOW_ID, ["a"], redriven=True)
    assert flows.looks == 1


def test_a_look_does_what_advances_have_lost() -> None:
    flows = a_fan_in(3)
    flows.end("p0")
    flows.end("p2")
    flows.look_at_all()
    # The cursor has moved to the parent that has not ended.
    flows.end("p1")
    assert flows.advance("p1") == ["child"]
    flows.end("child", State.DEAD)
    looked = flows.look_at_all()
    assert (looked.at_rest, looked.failed, looked.to_blame) == (True, True, ["child"])


def test_a_look_after_a_redrive_redrives_only_what_blocks() -> None:
    flows = InMemoryFlows(nodes(a=[], b=[{"node": "a", "on_failure": "continue"}], c=[], d=["c"]))
    flows.look_at_all()
    for name in ("a", "c"):
        flows.end(name, State.DEAD)
        flows.advance(name)
    flows.end("b")
    asked = Redrive(token="t", at=NOW + SECOND, by="owner")
    flows.documents[FLOW_ID] = replace(flows.flow, redrives=(asked,))
    assert not flows.look_at_all().at_rest
    assert (flows.states()["a"], flows.states()["c"], flows.states()["d"]) == ("dead", "queued", "blocked")


def test_a_look_leaves_a_node_that_died_when_the_flow_was_redriven() -> None:
    """It has died of that redrive, or after it."""
    flows = InMemoryFlows(nodes(a=[], b=["a"]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    flows.documents[FLOW_ID] = replace(flows.flow, redrives=(Redrive(token="t", at=NOW, by="owner"),))
    flows.look_at_all()
    assert flows.states()["a"] == "dead"


def test_a_look_redrives_a_node_once_also_if_the_clock_of_the_redrive_is_fast() -> None:
    flows = InMemoryFlows(nodes(a=[]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    for token, looks in (("first", ["queued", "dead"]), ("second", ["queued", "dead"])):
        asked = Redrive(token=token, at=NOW + SECOND, by="ada")
        flows.documents[FLOW_ID] = replace(flows.flow, redrives=(*flows.flow.redrives, asked))
        for expected in looks:
            flows.look_at_all()
            assert flows.states()["a"] == expected
            if expected == "queued":
                flows.end("a", State.DEAD)


def test_a_look_without_a_document_of_its_flow_comes_again() -> None:
    look = FlowLook(InMemoryFlows(nodes(a=[])).parts)
    with pytest.raises(StoreUnavailableError, match="is gone"):
        look.flow(TENANT, "another")


def test_a_look_at_a_node_whose_group_is_busy_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise TransactionConflictError("others write the group")

    monkeypatch.setattr(NodeDocuments, "carry_out", busy)
    looked = InMemoryFlows(nodes(a=[])).look_at_all()
    assert (looked.again, looked.busy) == (False, True)


def test_a_look_tries_a_busy_group_once(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = InMemoryFlows(
        [*({"name": f"busy{number}", "group": "g"} for number in range(20)), {"name": "free", "group": "h"}]
    )
    tried = _refuse_busy_nodes(monkeypatch)
    assert flows.look_at_all().busy
    assert (tried, flows.states()) == (["busy0"], {"free": "queued"})


def test_nodes_of_one_group_do_not_start_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would keep each other busy."""
    insert, inserting = InMemoryFlows.insert_if_absent, OneAtATime()

    def insert_alone(self: InMemoryFlows, job: Job, *, batch: Job | None = None) -> Job:
        inserting.visit()
        return insert(self, job, batch=batch)

    monkeypatch.setattr(InMemoryFlows, "insert_if_absent", insert_alone)
    flows = InMemoryFlows([{"name": str(number), "group": "g"} for number in range(10)])
    flows.look_at_all()
    assert len(flows.states()) == 10


def _many_starts() -> InMemoryFlows:
    return InMemoryFlows(nodes(**{f"busy{number}": [] for number in range(8)}, free=[]))


def _many_moves() -> InMemoryFlows:
    flows = InMemoryFlows(nodes(a=[], b=[], busy=["a", "b"], free=["a", "b"]))
    flows.look_at_all()
    for name in ("a", "b"):
        flows.end(name)
    return flows


@pytest.mark.parametrize("due", [_many_starts, _many_moves])
def test_a_look_starts_the_nodes_behind_those_whose_groups_are_busy(
    due: Callable[[], InMemoryFlows], monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = due()
    _refuse_busy_nodes(monkeypatch)
    assert flows.look_at_all().busy
    assert flows.states().get("free") == "queued"


def test_no_node_starts_before_its_skipped_parent_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    tolerant = {"node": "busy", "on_failure": "continue"}
    skipped = {name: [{"node": name, "on_failure": "skip"}] for name in ("a", "busy", "e")}
    flows = InMemoryFlows(nodes(a=[], busy=skipped["a"], c=[tolerant], d=["c"], e=skipped["busy"], f=skipped["e"]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    with monkeypatch.context() as busy:
        _refuse_busy_nodes(busy)
        assert flows.look_at_all().busy
    assert flows.states() == {"a": "dead"}
    flows.look_at_all()
    assert flows.states() == {"a": "dead", "busy": "skipped", "c": "queued", "e": "skipped", "f": "skipped"}


def test_a_redrive_tries_a_busy_group_once_and_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = InMemoryFlows([*({"name": name, "group": "g"} for name in ("a", "b")), *nodes(c=["a"], d=["b"])])
    flows.look_at_all()
    for name in ("a", "b"):
        flows.end(name, State.DEAD)
    flows.documents[FLOW_ID] = replace(flows.flow, redrives=(Redrive(token="t", at=NOW + SECOND, by="owner"),))
    tried = []

    def busy(_flows: InMemoryFlows, job: Job, **_audit: object) -> Job:
        tried.append(job.id)
        raise TransactionConflictError("others write the group")

    with monkeypatch.context() as others:
        others.setattr(InMemoryFlows, "redrive", busy)
        looked = flows.look_at_all()
    assert (looked.at_rest, looked.busy, len(tried)) == (False, True, 1)
    assert flows.states() == {"a": "dead", "b": "dead"}, "what follows them waits for the redrive"
    assert not flows.look_at_all().busy
    assert flows.states() == {"a": "queued", "b": "queued"}


def _refuse_busy_nodes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of those that were tried."""
    insert, tried = InMemoryFlows.insert_if_absent, list[str]()

    def insert_if_free(self: InMemoryFlows, job: Job, *, batch: Job | None = None) -> Job:
        if job.flow and job.flow.node.startswith("busy"):
            tried.append(job.flow.node)
            raise TransactionConflictError("others write the group")
        return insert(self, job, batch=batch)

    monkeypatch.setattr(InMemoryFlows, "insert_if_absent", insert_if_free)
    return tried


def _a_start() -> InMemoryFlows:
    return InMemoryFlows(nodes(a=[], b=["a"]))


def _a_mark() -> InMemoryFlows:
    flows = InMemoryFlows(nodes(a=[], b=["a"], s=[]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    return flows


def _a_redrive() -> InMemoryFlows:
    flows = _a_mark()
    flows.advance("a")
    asked = Redrive(token="t", at=NOW + SECOND, by="owner")
    flows.documents[FLOW_ID] = replace(flows.flow, redrives=(asked,))
    return flows


@pytest.mark.parametrize("due", [_a_start, _a_mark, _a_redrive])
def test_a_look_that_runs_out_of_time_comes_again(due: Callable[[], InMemoryFlows]) -> None:
    flows = due()
    assert FlowLook(flows.parts)(flows.flow, lambda: False).again


def test_a_look_knows_nodes_that_were_added() -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"]))
    flows.look_at_all()
    flows.end("a")
    flows.advance("a")
    flows.add(flows.flow, json.dumps({"nodes": [{"name": "c", "type": "t", "after": ["a"]}], "types": {}}), now=NOW)
    flows.look_at_all()
    assert flows.states()["c"] == "queued"
    assert flows.moved[LAST].additions == 1


def test_a_node_behind_a_skipped_one_starts_after_that_is_written() -> None:
    tolerant = {"node": "b", "on_failure": "continue"}
    flows = InMemoryFlows(nodes(c=[tolerant], d=[tolerant, "s"], b=[{"node": "a", "on_failure": "skip"}], a=[], s=[]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    flows.end("s")
    flows.inserted.clear()
    flows.look_at_all()
    assert (flows.inserted[0], sorted(flows.inserted)) == ("b", ["b", "c", "d"])
    assert flows.states()["b"] == "skipped"


@pytest.mark.parametrize(
    ("resolution", "at_rest", "final", "ended"),
    [
        (Resolution.SUCCEEDED, True, True, 2),
        (Resolution.FAILED, True, True, 2),
        (Resolution.SKIPPED, True, True, 2),
        # A redrive of the node that blocks it lets it start.
        (Resolution.BLOCKED, True, False, 2),
        (Resolution.PENDING, False, False, 1),
    ],
)
def test_a_flow_is_final_once_no_node_can_start_any_more(
    resolution: Resolution, at_rest: bool, final: bool, ended: int
) -> None:
    looked = Looked(resolutions=[Resolution.SUCCEEDED, resolution], graph=Graph([]), again=False, busy=False)

    assert (looked.at_rest, looked.final, looked.ended) == (at_rest, final, ended)
