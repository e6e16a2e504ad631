"""Advances of flows whose nodes end in any order, with records that come late or twice."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.in_memory_flows import InMemoryFlows
from tidemill.domain.states import State


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[dict[str, Any]], set[str], list[int]]:
    """A sound graph, the nodes that fail, and choices of what happens next."""
    count = draw(st.integers(1, 7))
    graph = []
    for number in range(count):
        parents = draw(st.lists(st.integers(0, number - 1), unique=True, max_size=4)) if number else []
        edges = [
            {"node": f"n{parent}", "on_failure": draw(st.sampled_from(["fail", "skip", "continue"]))}
            for parent in parents
        ]
        graph.append({"name": f"n{number}", "after": edges})
    failing: set[str] = draw(st.sets(st.sampled_from([str(node["name"]) for node in graph])))
    return draw(st.permutations(graph)), failing, draw(st.lists(st.integers(0, 10), max_size=40))


def expected(graph: Sequence[Mapping[str, Any]], failing: set[str]) -> dict[str, str]:
    """What the rules say, from the graph alone."""
    found: dict[str, str] = {}
    for node in sorted(graph, key=lambda each: int(each["name"][1:])):
        said = []
        for edge in node["after"]:
            parent, rule = found[edge["node"]], edge["on_failure"]
            if parent == "blocked":
                said.append("blocked")
            elif parent != "succeeded" and rule != "continue":
                said.append("blocked" if rule == "fail" and parent == "dead" else "skipped")
        own = "dead" if node["name"] in failing else "succeeded"
        found[node["name"]] = "blocked" if "blocked" in said else "skipped" if said else own
    return found


@settings(max_examples=100)
@given(histories())
def test_advances_alone_do_what_the_rules_say_in_any_order(
    history: tuple[list[dict[str, Any]], set[str], list[int]],
) -> None:
    graph, failing, choices = history
    flows = InMemoryFlows(graph)
    flows.look_at_all()
    records = list(flows.inserted)
    flows.inserted.clear()
    #: Ends that no advance has seen yet.
    ended = [name for name in records if flows.states()[name] in {"skipped", "blocked"}]
    while True:
        running = [name for name, state in flows.states().items() if state == "queued"]
        if not running and not ended:
            break
        choice = choices.pop() if choices else 0
        if running and (not ended or choice % 2):
            name = running[choice % len(running)]
            flows.end(name, State.DEAD if name in failing else State.SUCCEEDED)
            ended.append(name)
        else:
            # Some of the records, and sometimes one twice.
            batch = ended[: 1 + choice % 3]
            flows.advance(*batch)
            ended = ended[len(batch) if choice % 4 else 0 :] if choice else ended[len(batch) :]
            ended += [name for name in flows.inserted if flows.states()[name] in {"skipped", "blocked"}]
            flows.inserted.clear()
    assert flows.states() == expected(graph, failing)
    assert flows.looks
    looked = flows.look_at_all()
    assert (looked.at_rest, looked.again) == (True, False)
