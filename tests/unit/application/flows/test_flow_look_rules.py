"""What one look of a flow does for each state of its nodes: which it redrives, starts and marks, and what it reads."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, with_changes
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows, a_fan_in, nodes
from tidemill.application.flows.flow_look import FlowLook, Looked
from tidemill.application.ports import Unreadable, ignore_unreadable
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError, WriteRefusedError
from tidemill.domain.flows.flow_cursor import ALL_ENDED, Cursor
from tidemill.domain.flows.flow_graph import LAST, Graph
from tidemill.domain.flows.flows import Edge, OnFailure, Resolution
from tidemill.domain.job import Job, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Signal


def after(name: str, rule: str = "fail") -> dict[str, str]:
    return {"node": name, "on_failure": rule}


@pytest.mark.parametrize(
    ("resolution", "failed"),
    [
        (Resolution.FAILED, True),
        (Resolution.BLOCKED, True),
        (Resolution.SKIPPED, False),
        (Resolution.SUCCEEDED, False),
        (Resolution.PENDING, False),
    ],
)
def test_a_flow_has_failed_if_a_failure_has_reached_its_last_nodes(resolution: Resolution, failed: bool) -> None:
    graph = Graph([("a", []), ("b", [Edge(node="a", on_failure=OnFailure.CONTINUE)])])
    assert Looked([Resolution.SUCCEEDED, resolution], graph, again=False, busy=False).failed is failed
    assert not Looked([Resolution.FAILED, Resolution.SUCCEEDED], graph, again=False, busy=False).failed


def test_a_look_counts_the_nodes_by_what_has_become_of_them() -> None:
    found = [Resolution.SUCCEEDED, Resolution.BLOCKED, Resolution.SUCCEEDED]
    counts = Looked(found, Graph([]), again=False, busy=False).counts
    assert list(counts.items()) == [("blocked", 1), ("succeeded", 2)]


class Redrives(InMemoryFlows):
    """Notes the redrives, and refuses some."""

    def __init__(self, of_nodes: Sequence[dict[str, Any]], *refusals: Exception) -> None:
        super().__init__(of_nodes)
        self.refusals = [*refusals]
        self.redriven: list[tuple[str, dict[str, object]]] = []

    def redrive(self, job: Job, **audit: object) -> Job:
        if self.refusals:
            raise self.refusals.pop(0)
        assert job == self.documents[job.id], "the whole document"
        self.redriven.append((job.flow.node if job.flow else "", audit))
        return super().redrive(job)


ASKED = NOW + SECOND
AUDIT = {"token": "t", "now": NOW, "by": "ada", "reason": "fixed"}


def died(flows: Redrives, *, at: datetime | None = NOW, state: State = State.DEAD, in_time: bool = True) -> Looked:
    """After a look, and the redrive of the flow that follows the deaths of all its nodes."""
    for job in [job for job in flows.documents.values() if job.flow]:
        flows.documents[job.id] = replace(job, state=state, finished_at=at, due=None, result="kept")
    first = Redrive(token="s", at=NOW - SECOND, by="bob")
    asked = Redrive(token="t", at=ASKED, by="ada", reason="fixed")
    flows.documents[FLOW_ID] = replace(flows.flow, redrives=(first, asked))
    return FlowLook(flows.parts)(flows.flow, lambda: in_time)


@pytest.mark.parametrize(
    ("at", "state", "redriven"),
    [
        (ASKED - SECOND, State.DEAD, True),
        (ASKED, State.DEAD, False),
        (ASKED + SECOND, State.DEAD, False),
        (None, State.DEAD, False),
        (NOW, State.EXPIRED, False),
        (NOW, State.CANCELLED, False),
    ],
)
def test_the_redrive_of_a_flow_redrives_the_nodes_that_were_dead_before_it(
    at: datetime | None, state: State, redriven: bool
) -> None:
    flows = Redrives(nodes(a=[]))
    flows.look_at_all()

    looked = died(flows, at=at, state=state)

    assert flows.redriven == ([("a", AUDIT)] if redriven else [])
    assert (looked.at_rest, looked.again) == (not redriven, False)


@pytest.mark.parametrize("refusal", [WriteRefusedError("redrive", None), TransactionConflictError("busy")])
def test_a_node_that_cannot_be_redriven_does_not_keep_the_others_dead(refusal: Exception) -> None:
    flows = Redrives(nodes(a=[], b=[]), refusal)
    flows.look_at_all()
    died(flows)
    assert len(flows.redriven) == 1


def test_an_outage_ends_the_look() -> None:
    flows = Redrives(nodes(a=[]), StoreUnavailableError("down"))
    flows.look_at_all()
    with pytest.raises(StoreUnavailableError):
        died(flows)


def test_a_look_redrives_as_many_as_at_once_in_any_case() -> None:
    flows = Redrives([{"name": f"n{number}"} for number in range(10)])
    flows.look_at_all()
    assert died(flows, in_time=False).again
    assert len(flows.redriven) == 8


def test_a_node_whose_document_is_gone_by_then_is_left_to_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    flows, asked = Redrives(nodes(a=[])), list[str]()
    flows.look_at_all()

    def refuse(job: Job, **_audit: object) -> Job:
        asked.append(job.flow.node if job.flow else "")
        raise WriteRefusedError("redrive", None)

    monkeypatch.setattr(flows, "get", lambda *_: None)
    monkeypatch.setattr(flows, "redrive", refuse)
    assert died(flows).at_rest
    assert asked == ["a"]


def test_a_cancelled_flow_starts_nothing_and_looks_again() -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"]))
    flows.documents[FLOW_ID] = with_changes(flows.flow, signals=(Signal(name=CANCELLED, at=NOW, data="true"),))
    looked = flows.look_at_all()
    assert (looked.again, looked.busy, looked.counts) == (True, False, {"failed": 2})
    assert flows.states() == {"a": "cancelled", "b": "cancelled"}


@pytest.mark.parametrize(
    ("graph", "states"),
    [
        (nodes(a=[], b=["a"], c=["b"], d=["c"]), {"a": "dead", "b": "blocked", "c": "blocked", "d": "blocked"}),
        (
            nodes(a=[], b=[after("a", "skip")], c=["b"], d=[after("c", "continue")]),
            {"a": "dead", "b": "skipped", "c": "skipped", "d": "queued"},
        ),
        (nodes(a=[], b=[after("a", "continue")]), {"a": "dead", "b": "queued"}),
    ],
)
def test_one_look_marks_all_that_follows_a_failure(graph: list[dict[str, Any]], states: dict[str, str]) -> None:
    flows = InMemoryFlows(graph)
    flows.look_at_all()
    flows.end("a", State.DEAD)

    flows.look_at_all()
    assert flows.states() == states
    flows.inserted.clear()
    flows.look_at_all()
    assert flows.inserted == [], "a second look finds nothing to do"


class Asked(InMemoryFlows):
    """Notes of which nodes the cursors are read, without the last one."""

    def __init__(self, of_nodes: Sequence[dict[str, Any]]) -> None:
        super().__init__(of_nodes)
        self.asked: list[int] = []

    def cursors(self, flow: Job, nodes: Sequence[int]) -> Mapping[int, Cursor]:
        self.asked += [node for node in nodes if node != LAST]
        return super().cursors(flow, nodes)


@pytest.mark.parametrize(
    ("graph", "dead", "asked"),
    [
        # A node with one parent needs no cursor.
        (nodes(a=[], b=["a"]), None, []),
        (nodes(a=[], b=["a"]), "a", []),
        (nodes(a=[], b=[after("a", "skip")], c=["b"]), "a", []),
        (nodes(a=[], b=[], c=["a", "b"]), None, [2]),
        (nodes(a=[], b=[], c=["a", "b"], d=["a"], e=["c", "b"]), None, [2, 4]),
        # Its cursor is behind, and is read again for the move.
        (nodes(a=[], b=[], c=["a", "b"]), "a", [2, 2]),
    ],
)
def test_a_look_reads_the_cursors_of_nodes_with_several_parents(
    graph: list[dict[str, Any]], dead: str | None, asked: list[int]
) -> None:
    flows = Asked(graph)
    flows.look_at_all()
    if dead:
        flows.end(dead, State.DEAD)
    flows.asked.clear()

    flows.look_at_all()

    assert flows.asked == asked


@pytest.mark.parametrize(
    ("rule", "cursors", "state"),
    # A cursor has to say that a redrive of a parent counts. A node that is not needed stays so.
    [("fail", 1, "blocked"), ("skip", 0, "skipped")],
)
def test_a_node_of_several_parents_that_have_ended_is_marked(rule: str, cursors: int, state: str) -> None:
    flows = Asked(nodes(a=[], b=[], c=[after("a", rule), after("b", rule)]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    flows.end("b")
    flows.asked.clear()

    flows.look_at_all()

    assert flows.states()["c"] == state
    assert len(flows.asked) == cursors
    assert (flows.moved.get(2, Cursor()).at == ALL_ENDED) is (rule == "fail")


@pytest.mark.parametrize(
    ("cursor", "ended", "moved"),
    [
        # An advance was lost.
        (Cursor(at=0, version="v"), ["p0"], Cursor(at=1)),
        (Cursor(at=1, version="v"), ["p0", "p1"], Cursor(at=2)),
        # Its parents had ended, and one is alive again.
        (Cursor(at=ALL_ENDED, version="v"), ["p1", "p2"], Cursor(at=0)),
        (Cursor(at=ALL_ENDED, version="v"), ["p0", "p1"], Cursor(at=2)),
        # It stands at a parent that is alive.
        (Cursor(at=1, by=0, version="v"), ["p0", "p2"], Cursor(at=1, by=0)),
    ],
)
def test_a_look_moves_the_cursors_that_are_behind(cursor: Cursor, ended: list[str], moved: Cursor) -> None:
    flows = a_fan_in(3)
    for name in ended:
        flows.end(name)
    flows.moved[3] = cursor

    flows.look_at_all()

    assert replace(flows.moved[3], version=None) == moved
    assert (flows.moved[3].version == "v") is (moved == replace(cursor, version=None))


class Ending(InMemoryFlows):
    """A node that has been redriven ends at a read of documents."""

    at_read = 0

    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable = ignore_unreadable) -> list[Job]:
        self.at_read -= 1
        if self.at_read == 0:
            self.end("a")
        return super().get_many(keys, unreadable=unreadable)


@pytest.mark.parametrize(("at_read", "again"), [(0, False), (2, True)])
def test_a_look_comes_again_if_a_node_ended_since_it_was_read(at_read: int, again: bool) -> None:
    flows = Ending(nodes(a=[], b=[after("a", "continue")]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    flows.look_at_all()
    flows.end("b")
    job = flows.node("a")
    assert job is not None
    flows.redrive(job)
    flows.at_read = at_read

    assert flows.look_at_all().again is again


def test_a_node_that_is_marked_though_it_had_to_wait_at_first_is_at_rest() -> None:
    flows = Ending(nodes(b=[], a=[], c=["b", "a"]))
    flows.look_at_all()
    flows.end("b", State.DEAD)
    # After the cursor of `c` has moved to it.
    flows.at_read = 2

    looked = flows.look_at_all()

    assert flows.states() == {"b": "dead", "a": "succeeded", "c": "blocked"}
    assert looked.at_rest


def test_the_nodes_of_a_large_flow_are_read_a_hundred_at_a_time() -> None:
    flows = InMemoryFlows([{"name": f"n{number}"} for number in range(250)])
    flows.documents[FLOW_ID] = replace(flows.flow, created_at=NOW - timedelta(days=1))
    documents = FlowLook(flows.parts).documents(flows.flow)
    assert (flows.calls["get_many"], flows.calls["documents"]) == (3, 250)
    documents.document(7)
    assert flows.calls["get_many"] == 3


def test_a_look_that_has_time_for_some_starts_comes_again() -> None:
    flows = InMemoryFlows([{"name": f"n{number}"} for number in range(20)])
    left = iter([True, False])
    looked = FlowLook(flows.parts)(flows.flow, lambda: next(left))
    assert (looked.again, len(flows.inserted)) == (True, 16)
    assert LAST not in flows.moved


def test_a_node_that_stays_blocked_costs_no_read_of_its_cursor() -> None:
    flows = Asked(nodes(a=[], b=[], c=["a", "b"]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    flows.end("b")
    flows.look_at_all()
    assert flows.states()["c"] == "blocked"
    flows.asked.clear()

    flows.look_at_all()

    assert flows.asked == []


def test_a_look_at_several_last_nodes_is_refused_no_write(monkeypatch: pytest.MonkeyPatch) -> None:
    flows, moves = InMemoryFlows(nodes(a=[], b=[])), list[Cursor | None]()
    flows.look_at_all()
    move = flows.move

    def noted(*call: Any) -> Cursor | None:
        moves.append(move(*call))
        return moves[-1]

    monkeypatch.setattr(flows, "move", noted)
    flows.look_at_all()
    assert moves == [flows.moved[LAST]]


def test_a_look_at_one_last_node_reads_no_cursor() -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"]))

    flows.look_at_all()

    assert flows.calls["cursors"] == 0


def test_the_document_of_the_flow_is_read_anew() -> None:
    flows = InMemoryFlows(nodes(a=[]))
    look = FlowLook(flows.parts)
    assert look.flow(flows.flow.tenant, FLOW_ID) == flows.flow
