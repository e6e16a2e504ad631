"""The cursor of a node: where each end of a parent moves it, and what is due for the node."""

from collections.abc import Collection, Sequence

import pytest

from tests.support.builders import with_changes
from tests.support.in_memory_flows import InMemoryFlows, nodes
from tidemill.application.flows.cursor_mover import CursorMover
from tidemill.application.flows.flow_nodes import NodeDocuments
from tidemill.domain.flows.flow_cursor import ALL_ENDED, Cursor
from tidemill.domain.flows.flow_graph import LAST
from tidemill.domain.flows.flows import NodeVerdict
from tidemill.domain.records import replace
from tidemill.domain.states import State

#: The number of the child, which follows p0, p1 and p2.
CHILD = 3
ALIVE, DONE, DEAD = State.QUEUED, State.SUCCEEDED, State.DEAD
WAIT, START, BLOCK, SKIP = NodeVerdict.WAIT, NodeVerdict.START, NodeVerdict.BLOCK, NodeVerdict.SKIP


def ended(flows: InMemoryFlows, states: Sequence[State]) -> None:
    for number, state in enumerate(states):
        if state.terminal:
            flows.end(f"p{number}", state)


def a_child(*states: State, rule: str = "fail") -> InMemoryFlows:
    """Make a child of three parents in these states, none of which an advance has seen."""
    parents = [f"p{number}" for number in range(3)]
    edges = [{"node": parent, "on_failure": rule} for parent in parents]
    flows = InMemoryFlows([*({"name": parent} for parent in parents), {"name": "child", "after": edges}])
    flows.look_at_all()
    flows.moved.clear()
    flows.calls.clear()
    ended(flows, states)
    return flows


def due(flows: InMemoryFlows, node: int, cursor: Cursor | None, by: Collection[int] | None) -> NodeVerdict:
    if cursor:
        flows.moved[node] = replace(cursor, version="seen")
    documents = NodeDocuments(flows.flow, flows.parts)
    return CursorMover(documents, flows).due(node, flows.moved.get(node), ended=by)


@pytest.mark.parametrize(
    ("states", "cursor", "by", "verdict", "moved", "reads"),
    [
        # It waits for its first parent, so the end of another one does not concern it.
        ([ALIVE, DONE, DONE], None, {1, 2}, WAIT, None, 0),
        ([ALIVE, DONE, DONE], None, set(), WAIT, None, 0),
        ([DONE, ALIVE, ALIVE], None, {0}, WAIT, Cursor(at=1, by=0), 4),
        ([DONE, DONE, ALIVE], None, {0, 1}, WAIT, Cursor(at=2, by=0), 4),
        ([DONE, DONE, ALIVE], Cursor(at=1, by=0), {1}, WAIT, Cursor(at=2, by=1), 3),
        ([DONE, DONE, ALIVE], Cursor(at=1, by=0), {2}, WAIT, Cursor(at=1, by=0), 0),
        # The record that moved it comes again: the move may have crashed before its read.
        ([DONE, DONE, ALIVE], Cursor(at=1, by=0), {0}, WAIT, Cursor(at=2, by=0), 3),
        ([DONE, ALIVE, ALIVE], Cursor(at=1, by=0), {0}, WAIT, Cursor(at=1, by=0), 3),
        ([DONE, DONE, DONE], None, {0}, START, None, 3),
        ([DONE, DONE, DONE], Cursor(at=2, by=1), {2}, START, Cursor(at=2, by=1), 1),
        ([DEAD, ALIVE, DONE], None, {0}, WAIT, Cursor(at=1, by=0, clean=False), 4),
        ([DEAD, DONE, DONE], None, {0}, BLOCK, Cursor(at=ALL_ENDED, by=0, clean=False), 6),
        ([DONE, DONE, DEAD], Cursor(at=2, by=1), {2}, BLOCK, Cursor(at=ALL_ENDED, by=2, clean=False), 4),
        # A parent before the cursor had failed.
        ([DONE, DONE, DONE], Cursor(at=2, by=1, clean=False), {2}, START, Cursor(at=ALL_ENDED, by=2, clean=False), 4),
        ([DEAD, DONE, DONE], Cursor(at=2, by=1, clean=False), {2}, BLOCK, Cursor(at=ALL_ENDED, by=2, clean=False), 4),
        # Once all have ended, each end counts, and all are read anew.
        ([DONE, DONE, DONE], Cursor(at=ALL_ENDED, by=2, clean=False), {1}, START, None, 4),
        ([DONE, DEAD, DONE], Cursor(at=ALL_ENDED, by=2, clean=False), {0}, BLOCK, None, 7),
        (
            [DONE, ALIVE, DONE],
            Cursor(at=ALL_ENDED, by=2, clean=False),
            {2},
            WAIT,
            Cursor(at=1, by=2, clean=True),
            5,
        ),
        # A look asks in any case.
        ([DONE, ALIVE, DONE], None, None, WAIT, Cursor(at=1), 4),
        ([DONE, DONE, DONE], Cursor(at=1, by=0), None, START, None, 2),
    ],
)
def test_an_end_moves_the_cursor_past_the_parents_that_have_ended(  # noqa: PLR0917 - a table
    states: list[State],
    cursor: Cursor | None,
    by: set[int] | None,
    verdict: NodeVerdict,
    moved: Cursor | None,
    reads: int,
) -> None:
    flows = a_child(*states)

    assert due(flows, CHILD, cursor, by) is verdict

    stood = moved or cursor
    present = flows.moved.get(CHILD)
    assert (present and replace(present, version=None)) == stood
    assert flows.calls["documents"] == reads
    assert flows.calls["move"] == (stood != cursor)


@pytest.mark.parametrize(
    ("rule", "states", "verdict"),
    [
        ("skip", [DONE, DEAD, DONE], SKIP),
        ("continue", [DONE, DEAD, DEAD], START),
        ("fail", [DONE, DEAD, DONE], BLOCK),
        ("skip", [DONE, DEAD, ALIVE], WAIT),
    ],
)
def test_the_rule_of_an_edge_says_what_a_failure_means(rule: str, states: list[State], verdict: NodeVerdict) -> None:
    flows = a_child(*states, rule=rule)

    assert due(flows, CHILD, None, {0}) is verdict
    tolerated = rule == "continue"
    assert flows.calls["move"] == (not tolerated), "a node that may start needs no cursor"


def test_a_node_that_has_started_is_due_for_nothing() -> None:
    flows = a_child(DONE, DONE, DONE)
    flows.look_at_all()
    assert flows.states()["child"] == "queued"
    flows.calls.clear()

    assert due(flows, CHILD, Cursor(at=ALL_ENDED, by=2, clean=False), {2}) is WAIT
    assert (flows.calls["documents"], flows.calls["move"]) == (1, 0)


@pytest.mark.parametrize(("state", "verdict"), [(ALIVE, WAIT), (DONE, START), (DEAD, BLOCK)])
def test_a_node_with_one_parent_needs_no_cursor(state: State, verdict: NodeVerdict) -> None:
    flows = InMemoryFlows(nodes(p0=[], child=["p0"]))
    flows.look_at_all()
    flows.calls.clear()
    ended(flows, [state])

    assert due(flows, 1, None, {0}) is verdict
    assert flows.calls["move"] == 0


@pytest.mark.parametrize(
    ("states", "cursor", "by", "additions", "verdict", "moved"),
    [
        ([DONE, ALIVE], None, {0}, 0, WAIT, Cursor(at=1, by=0)),
        ([DEAD, DEAD], None, {0}, 0, START, None),
        ([DONE, DONE], Cursor(at=1, by=0), {1}, 0, START, None),
        # A look begins with the first parent, which may have been redriven.
        ([ALIVE, DONE], Cursor(at=1, by=0), None, 0, WAIT, Cursor(at=0)),
        ([ALIVE, DONE], Cursor(at=1, by=0), {1}, 0, START, None),
        # Another list of parents holds since nodes were added.
        ([ALIVE, DONE], Cursor(at=1, by=0), {1}, 1, WAIT, Cursor(at=0, by=1, additions=1)),
        ([DONE, ALIVE], Cursor(at=1, by=0), {0}, 1, WAIT, Cursor(at=1, by=0, additions=1)),
        # A caller that knew more nodes has moved it, and its look is still to come.
        ([DONE, DONE], Cursor(at=1, by=0, additions=2), {1}, 1, WAIT, None),
        ([DONE, DONE], Cursor(at=1, by=0, additions=2), None, 1, WAIT, None),
    ],
)
def test_the_end_of_the_flow_follows_its_last_nodes(  # noqa: PLR0917 - a table
    states: list[State],
    cursor: Cursor | None,
    by: set[int] | None,
    additions: int,
    verdict: NodeVerdict,
    moved: Cursor | None,
) -> None:
    flows = InMemoryFlows(nodes(p0=[], p1=[]))
    flows.look_at_all()
    flows.moved.clear()
    ended(flows, states)
    for _ in range(additions):
        flows.additions.append('{"nodes": [], "types": {}}')
    flows.documents[flows.flow.id] = with_changes(flows.flow, additions=additions)

    assert due(flows, LAST, cursor, by) is verdict
    present = flows.moved.get(LAST)
    assert (present and replace(present, version=None)) == (moved or cursor)


def test_many_parents_are_read_in_parts_and_no_further_than_the_first_that_is_alive() -> None:
    names = [f"p{number}" for number in range(250)]
    flows = InMemoryFlows([*({"name": name} for name in names), {"name": "child", "after": names}])
    flows.look_at_all()
    flows.calls.clear()
    ended(flows, [DONE] * 100)

    assert due(flows, 250, None, {0}) is WAIT
    assert flows.moved[250].at == 100
    # Two parts, and the parent at the cursor once more after the move.
    assert (flows.calls["get_many"], flows.calls["documents"]) == (3, 201)
    flows.calls.clear()
    assert due(flows, 250, Cursor(at=0), None) is WAIT
    assert flows.calls["get_many"] == 3


def test_an_addition_does_not_concern_the_parents_of_a_node() -> None:
    flows = a_child(ALIVE, DONE, DONE)
    flows.additions.append('{"nodes": [], "types": {}}')
    flows.documents[flows.flow.id] = with_changes(flows.flow, additions=1)

    assert due(flows, CHILD, Cursor(), {1}) is WAIT
    assert (flows.calls["documents"], flows.calls["move"]) == (0, 0)


def test_a_flow_whose_last_nodes_are_blocked_has_ended() -> None:
    flows = InMemoryFlows(nodes(p0=[], p1=["p0"], p2=[]))
    flows.look_at_all()
    flows.end("p0", DEAD)
    flows.end("p2")
    flows.look_at_all()
    assert flows.states()["p1"] == "blocked"
    flows.moved.clear()

    assert due(flows, LAST, None, {1, 2}) is START
    assert due(flows, LAST, None, None) is START
