"""The rules of flows: what has become of a node, and what that means for the nodes behind it."""

from datetime import timedelta
from itertools import permutations, product

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.domain.batches.composite_cancels import CANCELLED, cancelled_at
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.flows.ended_nodes import ended_nodes
from tidemill.domain.flows.flow_cursor import ALL_ENDED, Cursor
from tidemill.domain.flows.flow_graph import LAST
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.flows.flows import (
    LONGEST_FLOW,
    MOST_NODES,
    Edge,
    Node,
    NodeVerdict,
    OnFailure,
    Resolution,
    is_flow,
    is_node_name,
    pause,
    resolution_of,
    starts_nodes,
    through,
    verdict,
)
from tidemill.domain.job import Job, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.domain.waiting.signals import Signal
from tidemill.names import FLOW_TYPE

PLACE = FlowPlace(id="f", node="a")
BLOCKED = FlowPlace(id="f", node="a", mark=Mark.BLOCKED)
SKIPPED = FlowPlace(id="f", node="a", mark=Mark.SKIPPED)


def test_a_parent_that_is_given_by_its_name_fails_its_child() -> None:
    node = Node("c", Submission(type="t"), after=["a", Edge(node="b", on_failure=OnFailure.SKIP)])
    assert node.edges == (Edge(node="a", on_failure=OnFailure.FAIL), Edge(node="b", on_failure=OnFailure.SKIP))


@pytest.mark.parametrize("state", State)
def test_a_node_is_what_its_document_says(state: State) -> None:
    expected = {
        State.SUCCEEDED: Resolution.SUCCEEDED,
        **dict.fromkeys((State.DEAD, State.CANCELLED, State.EXPIRED), Resolution.FAILED),
    }
    assert resolution_of(a_job(state=state, flow=PLACE)) is expected.get(state, Resolution.PENDING)


def test_a_document_without_a_job_says_why() -> None:
    assert resolution_of(None) is Resolution.PENDING
    assert resolution_of(a_job(state=State.CANCELLED)) is Resolution.FAILED
    assert resolution_of(a_job(state=State.CANCELLED, flow=SKIPPED)) is Resolution.SKIPPED
    assert resolution_of(a_job(state=State.CANCELLED, flow=BLOCKED)) is Resolution.BLOCKED


def test_a_flow_is_cancelled_by_the_signal_of_that_name_alone() -> None:
    looked = Signal(name="other", at=NOW, data="true")
    cancelled = Signal(name=CANCELLED, at=NOW + SECOND, data="true")

    assert cancelled_at(a_job()) is None
    assert cancelled_at(a_job(signals=(looked,))) is None
    assert cancelled_at(a_job(signals=(looked, cancelled))) == NOW + SECOND
    assert starts_nodes(a_job(signals=(looked,)))


def test_only_a_job_of_the_type_of_flows_is_one() -> None:
    assert is_flow(a_job(type=FLOW_TYPE))
    assert not is_flow(a_job())


#: Rows: what the parent is. Columns: fail, skip, continue.
THROUGH = {
    Resolution.PENDING: (NodeVerdict.WAIT, NodeVerdict.WAIT, NodeVerdict.WAIT),
    Resolution.SUCCEEDED: (NodeVerdict.START, NodeVerdict.START, NodeVerdict.START),
    Resolution.FAILED: (NodeVerdict.BLOCK, NodeVerdict.SKIP, NodeVerdict.START),
    Resolution.SKIPPED: (NodeVerdict.SKIP, NodeVerdict.SKIP, NodeVerdict.START),
    Resolution.BLOCKED: (NodeVerdict.BLOCK, NodeVerdict.BLOCK, NodeVerdict.BLOCK),
}


@pytest.mark.parametrize(("parent", "edge"), list(product(Resolution, OnFailure)))
def test_an_edge_says_what_its_parent_means(parent: Resolution, edge: OnFailure) -> None:
    assert through(edge, parent) is THROUGH[parent][list(OnFailure).index(edge)]


@pytest.mark.parametrize("said", [each for size in range(4) for each in product(NodeVerdict, repeat=size)])
def test_all_parents_count_in_any_order(said: tuple[NodeVerdict, ...]) -> None:
    first = next(
        (each for each in (NodeVerdict.WAIT, NodeVerdict.BLOCK, NodeVerdict.SKIP) if each in said), NodeVerdict.START
    )
    assert {verdict(order) for order in permutations(said)} == {first}


def test_a_flow_that_has_ended_or_was_cancelled_starts_no_node() -> None:
    flow = a_job(state=State.PARKED)
    assert starts_nodes(flow)
    assert not starts_nodes(None)
    assert not starts_nodes(a_job(state=State.DEAD))
    assert not starts_nodes(a_job(signals=(Signal(name=CANCELLED, at=NOW, data="true"),)))


@pytest.mark.parametrize(("age", "minutes"), [(0, 16), (64, 16), (120, 30), (600, 60)])
def test_looks_become_rarer_with_the_age_of_the_flow_and_more_frequent_with_a_redrive(age: int, minutes: int) -> None:
    now = NOW + timedelta(minutes=age)
    assert pause(a_job(), nodes=600, now=now) == timedelta(minutes=minutes)
    redriven = a_job(redrives=(Redrive(token="t", at=now, by="owner"),))
    assert pause(redriven, nodes=600, now=now) == timedelta(minutes=16)


@pytest.mark.parametrize(("age", "seconds"), [(0, 5), (40, 10), (3600, 120)])
def test_looks_at_busy_nodes_are_more_frequent_than_others(age: int, seconds: int) -> None:
    assert pause(a_job(), nodes=2_000, now=NOW + timedelta(seconds=age), busy=True) == timedelta(seconds=seconds)


@pytest.mark.parametrize("nodes", [1, 600, 601, 3_000, MOST_NODES])
def test_what_a_flow_reads_while_it_waits_does_not_grow_with_its_nodes(nodes: int) -> None:
    now, read = NOW, 0
    while now - NOW <= LONGEST_FLOW:
        read += nodes
        now += pause(a_job(), nodes=nodes, now=now)
    assert read <= 1_600_000, "as the guide says"
    assert nodes < 600 or read > 1_000_000


def test_a_large_flow_that_is_busy_looks_less_often() -> None:
    assert pause(a_job(), nodes=MOST_NODES, now=NOW + timedelta(days=1), busy=True) == timedelta(minutes=10)


@pytest.mark.parametrize("name", ["a", "A.b-c_d:1", "0", "x" * 64])
def test_a_name_of_a_node(name: str) -> None:
    assert is_node_name(name)


@pytest.mark.parametrize("name", ["", "-a", "a b", "ä", "x" * 65, "a\n"])
def test_no_name_of_a_node(name: str) -> None:
    assert not is_node_name(name)


@pytest.mark.parametrize(
    ("cursor", "ended", "moves"),
    [
        (Cursor(), [0], True),
        (Cursor(), [1], False),
        (Cursor(at=2), [1, 2], True),
        (Cursor(at=2), [0, 3], False),
        # The move of the end of 1 may have crashed before its read.
        (Cursor(at=2, by=1), [1], True),
        (Cursor(at=2, by=1), [0], False),
        (Cursor(at=ALL_ENDED), [3], True),
        (Cursor(at=2), None, True),
        # The parents of the last node were others.
        (Cursor(at=2, additions=-1), [0], True),
        # A caller that knew more of them moved it.
        (Cursor(at=2, additions=1), [2], False),
        (Cursor(at=2, additions=1), None, False),
    ],
)
def test_the_end_of_a_parent_concerns_the_node_that_waits_for_it(
    cursor: Cursor, ended: list[int] | None, *, moves: bool
) -> None:
    assert cursor.moves_on(ended, additions=0) is moves


def test_a_node_without_a_cursor_waits_for_its_first_parent_and_nothing_hinders_it_yet() -> None:
    assert (Cursor().at, Cursor().clean, Cursor().additions) == (0, True, 0)


def test_the_keys_of_cursors_and_their_positions_are_the_same_in_each_version() -> None:
    """They are written: the number of the last node in the key, and the position behind all parents in the item."""
    assert (LAST, ALL_ENDED) == (-1, -1)


def node(state: State, place: FlowPlace | None = PLACE) -> Job:
    return a_job(id="n", state=state, flow=place)


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        (node(State.RUNNING), node(State.SUCCEEDED), True),
        (node(State.RUNNING), node(State.DEAD), True),
        (node(State.DEAD), node(State.CANCELLED), True),
        (None, node(State.CANCELLED, SKIPPED), True),
        (node(State.CANCELLED, BLOCKED), node(State.CANCELLED, SKIPPED), True),
        (node(State.CANCELLED, BLOCKED), node(State.QUEUED), False),
        (node(State.SUCCEEDED), node(State.SUCCEEDED), False),
        (node(State.SUCCEEDED), None, False),
        (None, node(State.QUEUED), False),
        (a_job(state=State.RUNNING), a_job(state=State.SUCCEEDED), False),
    ],
)
def test_the_end_of_a_node_moves_its_flow(before: Job | None, after: Job | None, *, moves: bool) -> None:
    found = ended_nodes([Change("1", before, after), Change("2", before, after)])
    assert [(each.sequence, each.names) for each in found.values()] == ([("1", frozenset("a"))] if moves else [])


def test_the_ended_nodes_say_that_one_of_them_had_been_redriven() -> None:
    redriven = replace(node(State.DEAD), redrives=(Redrive(token="t", at=NOW, by="ada"),))
    for ends in ([redriven, node(State.DEAD)], [node(State.DEAD), redriven]):
        (ended,) = ended_nodes([Change("1", None, each) for each in ends]).values()
        assert ended.redriven
    (ended,) = ended_nodes([Change("1", None, node(State.DEAD))]).values()
    assert not ended.redriven


def test_the_ended_nodes_of_one_flow_are_together() -> None:
    other = a_job(state=State.SUCCEEDED, flow=FlowPlace(id="f", node="b"))
    elsewhere = a_job(state=State.SUCCEEDED, flow=FlowPlace(id="g", node="b"))
    changes = [Change("1", None, node(State.DEAD)), Change("2", None, other), Change("3", None, elsewhere)]
    found = {flow_id: (ended.sequence, ended.names) for (_, flow_id), ended in ended_nodes(changes).items()}
    assert found == {"f": ("1", frozenset("ab")), "g": ("3", frozenset("b"))}
