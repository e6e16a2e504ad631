"""Advances and looks of flows: each node does what the rules say, once."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, a_job, with_changes
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows, a_fan_in, nodes
from tidemill.application.flows import flow_advance
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.flows.flow_cursor import ALL_ENDED, Cursor
from tidemill.domain.flows.flow_place import FlowPlace
from tidemill.domain.flows.flows import NODES_KEPT
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Signal


def before_the_next_move(flows: InMemoryFlows, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Act after a cursor was read and before it is written."""
    move = flows.move

    def act_then_move(flow: Job, node: int, cursor: Cursor) -> Cursor | None:
        monkeypatch.setattr(flows, "move", move)
        act()
        return move(flow, node, cursor)

    monkeypatch.setattr(flows, "move", act_then_move)


def test_a_child_starts_after_its_last_parent_whichever_that_is() -> None:
    for order in (["p0", "p1", "p2"], ["p2", "p1", "p0"], ["p1", "p0", "p2"]):
        flows = a_fan_in(3)
        for name in order[:-1]:
            flows.end(name)
            assert flows.advance(name) == []
        flows.end(order[-1])
        assert flows.advance(order[-1]) == ["child"]


@pytest.mark.parametrize(("age", "started"), [(NODES_KEPT - MILLISECOND, ["child"]), (NODES_KEPT, [])])
def test_a_flow_whose_nodes_may_be_gone_starts_none(age: timedelta, started: list[str]) -> None:
    """A child whose document has expired would run a second time."""
    flows = InMemoryFlows([{"name": "a"}, {"name": "child", "after": ["a"]}])
    flows.documents[FLOW_ID] = replace(flows.flow, created_at=NOW - age)
    flows.look_at_all()
    flows.end("a")
    assert flows.advance("a") == started


def test_an_advance_may_be_repeated() -> None:
    flows = a_fan_in(2)
    flows.end("p0")
    flows.end("p1")
    assert [flows.advance("p0", "p1"), flows.advance("p1"), flows.advance("p0")] == [["child"], [], []]


def test_parents_that_end_in_their_reverse_order_need_no_cursor() -> None:
    flows = a_fan_in(5)
    for number in reversed(range(5)):
        flows.end(f"p{number}")
        flows.advance(f"p{number}")
    assert (flows.calls["move"], flows.states()["child"]) == (0, "queued")


def test_a_move_that_crashed_before_its_read_is_repeated_by_the_same_record() -> None:
    flows = a_fan_in(3)
    flows.end("p0")
    # The process died after this write. The end of `p1` found the cursor at `p0`.
    flows.moved[3] = Cursor(at=1, by=0, version="v")
    flows.end("p1")
    flows.advance("p0")
    assert flows.moved[3].at == 2


def test_the_parent_is_read_after_the_cursor_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = a_fan_in(2)

    def meanwhile() -> None:
        # Its own advance comes before the write, and finds the cursor elsewhere.
        flows.end("p1")
        flows.advance("p1")

    before_the_next_move(flows, meanwhile, monkeypatch)
    flows.end("p0")
    assert flows.advance("p0") == ["child"]


def test_a_child_waits_for_the_others_though_the_next_parent_ended_as_the_cursor_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flows = a_fan_in(3)

    def meanwhile() -> None:
        flows.end("p1")

    before_the_next_move(flows, meanwhile, monkeypatch)
    flows.end("p0")

    assert (flows.advance("p0"), flows.moved[3].at) == ([], 2)


def test_an_advance_that_another_one_overtook_reads_the_cursor_again(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = a_fan_in(3)

    def meanwhile() -> None:
        # The same record was delivered twice.
        flows.advance("p0")

    before_the_next_move(flows, meanwhile, monkeypatch)
    flows.end("p0")
    assert flows.advance("p0") == []
    assert (flows.calls["move"], flows.moved[3].at) == (1, 1)


def test_an_advance_that_was_overtaken_by_further_moves_goes_on_behind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = a_fan_in(3)

    def meanwhile() -> None:
        flows.end("p1")
        flows.advance("p0", "p1")

    before_the_next_move(flows, meanwhile, monkeypatch)
    flows.end("p0")
    assert flows.advance("p0") == []
    assert (flows.calls["move"], flows.moved[3].at) == (1, 2)


def test_no_parent_before_the_cursor_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = a_fan_in(4)
    for name in ("p0", "p1"):
        flows.end(name)
    flows.moved[4] = Cursor(at=1, by=0, version="v")

    def meanwhile() -> None:
        flows.end("p2")

    before_the_next_move(flows, meanwhile, monkeypatch)
    assert (flows.advance("p1"), flows.moved[4].at) == ([], 3)
    # It reads the documents of p1 to p3, and after each move the one at which the cursor stands.
    assert flows.calls["documents"] == 5


def test_a_redriven_parent_of_a_blocked_node_counts_when_it_ends_again() -> None:
    flows = a_fan_in(3)
    for name, state in (("p0", State.SUCCEEDED), ("p1", State.DEAD), ("p2", State.DEAD)):
        flows.end(name, state)
        flows.advance(name)
    assert (flows.states()["child"], flows.moved[3].at) == ("blocked", ALL_ENDED)
    for name in ("p2", "p1"):
        job = flows.node(name)
        assert job is not None
        flows.redrive(job)
    flows.end("p2")
    assert flows.advance("p2") == []
    flows.end("p1")
    assert flows.advance("p1") == ["child"]


def test_a_parent_that_is_redriven_while_the_others_are_read_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = a_fan_in(2)
    move = flows.move

    def redrive_then_move(flow: Job, node: int, cursor: Cursor) -> Cursor | None:
        if cursor.at == ALL_ENDED:
            job = flows.node("p0")
            assert job is not None
            flows.redrive(job)
        return move(flow, node, cursor)

    monkeypatch.setattr(flows, "move", redrive_then_move)
    flows.end("p0", State.DEAD)
    flows.end("p1")
    flows.advance("p0", "p1")
    assert ("child" not in flows.states(), flows.moved[2].at) == (True, 0)
    flows.end("p0")
    assert flows.advance("p0") == ["child"]


def test_skipped_is_final() -> None:
    flows = InMemoryFlows(nodes(a=[], b=[{"node": "a", "on_failure": "skip"}]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    flows.advance("a")
    job = flows.node("a")
    assert job is not None
    flows.redrive(job)
    flows.end("a")
    assert (flows.advance("a"), flows.states()["b"]) == ([], "skipped")


def test_the_flow_is_asked_to_look_when_the_last_nodes_have_ended() -> None:
    flows = InMemoryFlows(nodes(a=[], b=[], c=["a"]))
    flows.look_at_all()
    for name in ("b", "a"):
        flows.end(name)
        flows.advance(name)
    assert flows.looks == 0
    flows.end("c")
    flows.advance("c")
    assert flows.looks == 1


@pytest.mark.parametrize("changes", [{"state": State.DEAD}, {"state": State.SUCCEEDED}])
def test_a_flow_that_has_ended_starts_nothing(changes: Mapping[str, Any]) -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"]))
    flows.look_at_all()
    flows.end("a")
    flows.documents[FLOW_ID] = with_changes(flows.flow, **changes)
    assert (flows.advance("a"), list(flows.states())) == ([], ["a"])


def test_a_flow_that_is_gone_starts_nothing() -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"]))
    flows.look_at_all()
    flows.end("a")
    flow = flows.documents.pop(FLOW_ID)
    assert flow_advance.FlowAdvance(flows.parts).advance(flow.tenant, FLOW_ID, ["a"]) == []
    flows.documents[FLOW_ID] = a_job(id=FLOW_ID, flow=FlowPlace(id=FLOW_ID, node="a"))
    assert flows.advance("a") == []


def test_a_cancel_leaves_no_node_to_an_advance_that_comes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"], c=["a"], d=["c"]))
    flows.look_at_all()
    flows.end("a")
    insert = flows.insert_if_absent

    def cancel_then_insert(job: Job, **_: Any) -> Job:
        monkeypatch.setattr(flows, "insert_if_absent", insert)
        cancelled = Signal(name=CANCELLED, at=NOW, data="true")
        flows.documents[FLOW_ID] = with_changes(flows.flow, signals=(cancelled,))
        assert flows.look_at_all().final
        return insert(job)

    monkeypatch.setattr(flows, "insert_if_absent", cancel_then_insert)
    assert flows.advance("a") == []
    assert flows.states() == {"a": "succeeded", "b": "cancelled", "c": "cancelled", "d": "cancelled"}
    assert flows.advance("a") == []


def test_a_cancel_ends_what_was_blocked_and_what_is_dead() -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"], c=[]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    flows.advance("a")
    flows.documents[FLOW_ID] = with_changes(flows.flow, signals=(Signal(name=CANCELLED, at=NOW, data="true"),))
    assert flows.look_at_all().final
    assert flows.states() == {"a": "cancelled", "b": "cancelled", "c": "cancelled"}


def test_what_would_take_too_long_is_left_to_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_advance, "MOST_FOLLOWING", 2)
    flows = InMemoryFlows(nodes(a=[], b=["a"], c=["a"], d=["a"]))
    flows.look_at_all()
    flows.end("a")
    assert (flows.advance("a"), flows.looks) == ([], 1)
    flows.look_at_all()
    assert set(flows.states()) == set("abcd")


@pytest.mark.parametrize(("following", "looks"), [(200, 0), (201, 1)])
def test_an_advance_starts_two_hundred_nodes_itself(following: int, looks: int) -> None:
    names = [f"c{number}" for number in range(following)]
    flows = InMemoryFlows([{"name": "a"}, *({"name": name, "after": ["a"]} for name in names)])
    flows.look_at_all()
    flows.end("a")
    assert (sorted(flows.advance("a")), flows.looks) == ([] if looks else sorted(names), looks)


@pytest.mark.parametrize(("parents", "looks"), [(1_000, 0), (1_001, 1)])
def test_an_advance_reads_a_thousand_documents_itself(parents: int, looks: int) -> None:
    flows = a_fan_in(parents)
    for number in range(parents):
        flows.end(f"p{number}")
    assert (flows.advance("p0"), flows.looks) == ([] if looks else ["child"], looks)


def test_an_advance_returns_the_jobs_that_it_started_and_no_marks() -> None:
    edges = [{"node": "a", "on_failure": rule} for rule in ("fail", "skip", "continue")]
    flows = InMemoryFlows(nodes(a=[], b=edges[:1], c=edges[1:2], d=edges[2:]))
    flows.look_at_all()
    flows.end("a", State.DEAD)
    assert flows.advance("a") == ["d"]
    assert flows.states() == {"a": "dead", "b": "blocked", "c": "skipped", "d": "queued"}


def test_an_advance_reads_no_cursor_of_a_node_with_one_parent() -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"], c=["a"]))
    flows.look_at_all()
    flows.end("a")
    flows.calls.clear()

    assert sorted(flows.advance("a")) == ["b", "c"]
    assert flows.calls["cursors"] == 0


def test_the_end_of_a_flow_starts_no_node() -> None:
    flows = InMemoryFlows(nodes(a=[], c=[], b=["a"]))
    flows.look_at_all()
    for name, state in (("a", State.DEAD), ("c", State.SUCCEEDED)):
        flows.end(name, state)
    flows.advance("a")
    assert flows.states()["b"] == "blocked"

    assert flows.advance("b", "c") == []
    assert (flows.states()["b"], flows.looks) == ("blocked", 1)


@pytest.mark.parametrize(
    ("rule", "state", "again", "looks"),
    [
        ("fail", State.SUCCEEDED, True, 0),
        ("fail", State.DEAD, False, 0),
        ("skip", State.DEAD, False, 0),
        ("skip", State.DEAD, True, 0),
        # No change of its document tells the node behind it.
        ("fail", State.DEAD, True, 1),
    ],
)
def test_only_a_node_that_stays_blocked_asks_for_a_look(rule: str, state: State, again: bool, looks: int) -> None:
    flows = InMemoryFlows(nodes(a=[], b=[{"node": "a", "on_failure": rule}], c=["b"]))
    flows.look_at_all()
    flows.end("a", state)
    if again:
        flows.advance("a")

    flows.advance("a")

    assert flows.looks == looks


def test_the_advance_of_a_redriven_node_asks_for_a_look() -> None:
    flows = InMemoryFlows(nodes(a=[], b=["a"]))
    flows.look_at_all()
    flows.end("a")
    advance = flow_advance.FlowAdvance(flows.parts)

    advance.advance(flows.flow.tenant, FLOW_ID, ["a"], redriven=True)
    assert flows.looks == 1
    advance.ask_to_look(flows.flow.tenant, FLOW_ID)
    assert flows.looks == 2


def test_a_look_goes_on_where_an_advance_read_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_advance, "MOST_READ", 3)
    flows = a_fan_in(8)
    for number in reversed(range(8)):
        flows.end(f"p{number}")
        flows.advance(f"p{number}")
    assert (flows.looks, "child" in flows.states()) == (1, False)
    flows.look_at_all()
    assert flows.states()["child"] == "queued"


def test_a_fan_in_of_ten_thousand_costs_less_than_one_write_and_two_reads_a_node() -> None:
    count = 10_000
    flows = a_fan_in(count)
    order = [f"p{number}" for number in range(count)]
    Random(7).shuffle(order)
    for start in range(0, count, 100):
        for name in order[start : start + 100]:
            flows.end(name)
        flows.advance(*order[start : start + 100])
    if flows.looks:
        flows.look_at_all()
    assert flows.states()["child"] == "queued"
    assert flows.calls["move"] < 20
    assert flows.calls["documents"] <= 2 * count + 200
    assert flows.calls["insert"] == 1


def test_a_fan_in_whose_parents_end_in_their_order_costs_one_write_for_each_batch_of_records() -> None:
    flows = a_fan_in(1_000)
    for start in range(0, 1_000, 100):
        names = [f"p{number}" for number in range(start, start + 100)]
        for name in names:
            flows.end(name)
        flows.advance(*names)
    assert (flows.calls["move"], flows.states()["child"]) == (9, "queued")
