"""Flows: what becomes of their nodes, of their edges and of the flow itself."""

from datetime import timedelta
from typing import Any

from tests.simulation.actors.operator_objects import purger
from tests.simulation.stories.operator_tools import set_setting
from tests.simulation.stories.stage import BOB, TENANT, Mishap, Stage
from tidemill import composition
from tidemill.application.job_ids import node_job_id


def _node(name: str, *after: Any, fails: Any = 0, **more: Any) -> dict[str, Any]:
    payload = {"key": name} | ({"fails": fails} if fails else {}) | more
    return {"name": name, "type": "sim.node", "payload": payload} | ({"after": list(after)} if after else {})


def _edge(node: str, rule: str) -> dict[str, str]:
    return {"node": node, "on_failure": rule}


def a_flow_of_two_nodes_that_follow_each_other(stage: Stage) -> None:
    nodes = [_node("b", "a"), _node("a")]
    flow = stage.post("/flows", {"nodes": nodes, "tags": ["t"]}, key="one")
    stage.post("/flows", {"nodes": nodes, "tags": ["t"]}, key="one")
    stage.passes(15)
    stage.get(f"/flows/{flow['id']}")


def a_flow_that_is_refused(stage: Stage) -> None:
    stage.post("/flows", {"nodes": [_node("a", "b"), _node("b", "a"), _node("c", "c")]})
    stage.post("/flows", {"nodes": [_node("a"), _node("a"), _node("b", "x", "a", "a"), _node("-c")]})
    stage.post("/flows", {"nodes": [_node("a", fails="x"), {"name": "b", "type": "sim.unheard-of"}]})
    stage.post("/flows", {"nodes": [_node("a"), _node("b", _edge("a", "perhaps"))]})
    stage.post("/flows", {"nodes": []})
    flow = stage.post("/flows", {"nodes": [_node("a")]}, key="one")
    stage.post("/flows", {"nodes": [_node("b")]}, key="one")
    stage.post("/flows/none/cancel")
    stage.get(f"/flows/{flow['id']}", tenant=BOB)
    stage.post(f"/flows/{flow['id']}/cancel", tenant=BOB)


def a_flow_that_has_not_begun(stage: Stage) -> None:
    parents = [_node(f"parent-{number}") for number in range(6)]
    child = {"name": "child", "type": "sim.plain", "lane": "bulk", "group": "g", "tags": ["t"], "max_age_seconds": 9}
    flow = stage.post("/flows", {"nodes": [*parents, child | {"after": [each["name"] for each in parents]}]})
    stage.get(f"/flows/{flow['id']}")


def a_node_that_waits_for_two_parents(stage: Stage) -> None:
    nodes = [_node("slow", seconds=5), _node("quick"), _node("last", "slow", _edge("quick", "skip"))]
    flow = stage.post("/flows", {"nodes": nodes}, key="one")
    stage.passes(5)
    stage.get(f"/flows/{flow['id']}")
    stage.passes(15)
    stage.get(f"/flows/{flow['id']}")


def a_node_that_dies_and_each_rule_of_an_edge(stage: Stage) -> None:
    nodes = [
        {"name": "dead", "type": "sim.permanent", "payload": {"key": "dead"}},
        _node("blocked", "dead"),
        _node("skipped", _edge("dead", "skip")),
        _node("behind", "skipped", _edge("blocked", "continue")),
        _node("goes-on", _edge("skipped", "continue")),
    ]
    flow = stage.post("/flows", {"nodes": nodes}, key="one")
    stage.passes(15)
    stage.get(f"/flows/{flow['id']}")


def a_flow_that_dies_and_is_redriven(stage: Stage) -> None:
    nodes = [{"name": "a", "type": "sim.repaired", "payload": {"count": 1}}, _node("b", "a")]
    flow = stage.post("/flows", {"nodes": nodes}, key="one")
    stage.passes(60)
    stage.post(f"/jobs/{flow['id']}/redrive")
    stage.passes(60)
    stage.get(f"/flows/{flow['id']}")


def a_node_that_is_redriven_while_others_are_blocked_by_it(stage: Stage) -> None:
    """A node is added behind those, while it runs again."""
    slow = {"name": "slow", "type": "sim.snooze", "payload": {"count": 5, "seconds": 1}}
    nodes = [slow, _node("a", fails=2, seconds=4), _node("b", "a"), _node("c", "b")]
    flow = stage.post("/flows", {"nodes": nodes}, key="one")
    stage.passes(20)
    shown = stage.get(f"/flows/{flow['id']}")
    stage.post(f"/jobs/{shown['nodes'][1]['job_id']}/redrive")
    stage.post(f"/flows/{flow['id']}/nodes", {"nodes": [_node("d", "c")]})
    stage.passes(3)
    stage.get(f"/flows/{flow['id']}")


def a_flow_that_is_cancelled(stage: Stage) -> None:
    flow = stage.post("/flows", {"nodes": [_node("a", seconds=8), _node("b", "a")]}, key="one")
    stage.passes(5)
    stage.post(f"/flows/{flow['id']}/cancel")
    stage.post(f"/flows/{flow['id']}/cancel")
    stage.passes(10)
    stage.get(f"/flows/{flow['id']}")


def a_cancelled_flow_whose_node_loses_its_worker(stage: Stage) -> None:
    """The node was asked to end, and waits for the end of a pause since."""
    flow = stage.post("/flows", {"nodes": [_node("a", seconds=12)]}, key="one")
    stage.next_call("work-default", "TransactWriteItems", Mishap.KILLED_BEFORE)
    stage.passes(4)
    stage.post(f"/flows/{flow['id']}/cancel")
    stage.passes(4)
    set_setting(stage, "pauses.type=sim.node", {})
    node = stage.get(f"/flows/{flow['id']}")["nodes"][0]["job_id"]

    def nudge() -> object:
        store = composition.parts().store
        lost = store.get(TENANT, node)
        assert lost
        assert lost.due
        store.nudge(lost, now=lost.due, limit=timedelta(0))
        return lost.state

    stage.operate("finds its worker lost", nudge)
    stage.passes(12)
    stage.get(f"/flows/{flow['id']}")
    stage.get(f"/jobs/{node}")


def a_node_that_is_cancelled(stage: Stage) -> None:
    """Another one goes on without it, so the flow succeeds."""
    snoozing = {"name": "a", "type": "sim.snooze", "payload": {"count": 5, "seconds": 1}}
    flow = stage.post("/flows", {"nodes": [snoozing, _node("b", _edge("a", "continue"))]}, key="one")
    stage.passes(4)
    shown = stage.get(f"/flows/{flow['id']}")
    stage.post(f"/jobs/{shown['nodes'][0]['job_id']}/cancel")
    stage.passes(6)
    stage.get(f"/jobs/{flow['id']}")


def nodes_that_are_added_while_a_flow_runs(stage: Stage) -> None:
    flow = stage.post("/flows", {"nodes": [_node("a", seconds=3)]}, key="one")
    path = f"/flows/{flow['id']}/nodes"
    plain = {"name": "c", "type": "sim.plain", "payload": {"count": 3}, "after": ["b"]}
    stage.post(path, {"nodes": [plain, _node("b", "a")]})
    stage.post(path, {"nodes": [plain, _node("b", "a")]})
    stage.post(path, {"nodes": [_node("b")]})
    stage.post(path, {"nodes": [_node("d", "x")]})
    stage.passes(30)
    stage.get(f"/flows/{flow['id']}")
    stage.post(path, {"nodes": [_node("late")]})


def a_flow_whose_nodes_are_purged(stage: Stage) -> None:
    """Its next look marks, blocks and starts them anew."""
    nodes = [
        {"name": "dead", "type": "sim.permanent", "payload": {"key": "dead"}},
        _node("slow", seconds=25),
        _node("blocked", "dead"),
        _node("skipped", _edge("dead", "skip")),
        _node("goes-on", _edge("skipped", "continue")),
    ]
    flow = stage.post("/flows", {"nodes": nodes}, key="one")
    stage.passes(6)

    def purge() -> list[bool]:
        store = composition.parts().store
        started = store.get(TENANT, flow["id"])
        assert started
        found = [store.get(TENANT, node_job_id(started, name)) for name in ("blocked", "skipped", "goes-on")]
        return [purger().purge(job) for job in found if job]

    stage.operate("purges nodes", purge)
    stage.post(f"/flows/{flow['id']}/nodes", {"nodes": [_node("more", "slow")]})
    stage.passes(3)
    stage.get(f"/flows/{flow['id']}")


def a_blocked_node_that_an_owner_and_an_operator_would_remove(stage: Stage) -> None:
    """It can be neither cancelled nor superseded, and a purge keeps it. Its flow is redriven, and it runs."""
    flow = stage.post("/flows", {"nodes": [_node("a", fails=2), _node("b", "a")]}, key="one")
    stage.passes(60)

    def find() -> str:
        started = composition.parts().store.get(TENANT, flow["id"])
        assert started
        return node_job_id(started, "b")

    blocked = stage.operate("looks for the blocked node", find)
    stage.post(f"/jobs/{blocked}/cancel")
    stage.post("/jobs", {"type": "sim.plain", "supersedes": blocked})

    def purge() -> list[bool]:
        job = composition.parts().store.get(TENANT, blocked)
        assert job
        jobs = purger()
        return [jobs.purge(each) for each in jobs.without_needed([job], kept=lambda _: None)]

    stage.operate("purges the blocked node", purge)
    stage.post(f"/jobs/{flow['id']}/redrive")
    stage.passes(60)
    stage.get(f"/flows/{flow['id']}")
