"""Flows through the deployed app: fan-out and fan-in, each rule for a failure, and a redrive that goes on."""

import json
from typing import Any

from tests.e2e.conftest import Deployed
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.wait import wait_until


def node(name: str, *after: Any, type_: str = "demo.flaky", **payload: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "payload": payload or {"failures": 0}, "after": list(after)}


def edge(parent: str, on_failure: str) -> dict[str, str]:
    return {"node": parent, "on_failure": on_failure}


def started(deployed: Deployed, *nodes: dict[str, Any]) -> str:
    answer = deployed.app.request("POST", "/flows", body=json.dumps({"nodes": nodes}).encode())
    assert answer.status == 202, answer
    return str(answer.json()["id"])


def states(deployed: Deployed, flow: str, *, once: str) -> dict[str, str]:
    """The states of the nodes, once the flow is in that state."""

    def there() -> dict[str, Any] | None:
        found = deployed.app.request("GET", f"/flows/{flow}").json()
        return dict(found) if found["state"] == once else None

    found = wait_until(there, PATIENCE_SECONDS, f"the flow {flow} to be {once}")
    assert found
    return {each["name"]: each["state"] for each in found["nodes"]}


def test_a_graph_fans_out_and_in_and_goes_on_from_its_failed_node(deployed: Deployed) -> None:
    flow = started(
        deployed,
        node("first"),
        *(node(f"middle{number}", "first") for number in range(3)),
        node("join", *(f"middle{number}" for number in range(3))),
        node("ask", "first", type_="demo.give_up", guest="Ada", reconsiders=True),
        node("last", "join", "ask"),
        node("instead", edge("ask", "skip")),
        node("anyhow", edge("ask", "continue")),
    )
    found = states(deployed, flow, once="dead")
    assert (found["join"], found["ask"], found["last"]) == ("succeeded", "dead", "blocked")
    assert (found["instead"], found["anyhow"]) == ("skipped", "succeeded")

    assert deployed.app.request("POST", f"/jobs/{flow}/redrive").status == 200
    found = states(deployed, flow, once="succeeded")
    assert (found["ask"], found["last"], found["instead"]) == ("succeeded", "succeeded", "skipped")
