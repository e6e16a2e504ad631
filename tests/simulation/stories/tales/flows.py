"""Flows: what becomes of their nodes, of their edges and of the flow itself."""

from typing import Any

from tests.simulation.stories.stage import Stage


def _node(name: str, *after: Any, fails: Any = 0, **more: Any) -> dict[str, Any]:
    payload = {"key": name} | ({"fails": fails} if fails else {}) | more
    return {"name": name, "type": "sim.node", "payload": payload} | ({"after": list(after)} if after else {})


def a_flow_of_two_nodes_that_follow_each_other(stage: Stage) -> None:
    nodes = [_node("b", "a"), _node("a")]
    flow = stage.post("/flows", {"nodes": nodes, "tags": ["t"]}, key="one")
    stage.post("/flows", {"nodes": nodes, "tags": ["t"]}, key="one")
    stage.passes(15)
    stage.get(f"/flows/{flow['id']}")
