"""Flows over HTTP, in tests."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.http_events import Answer, call
from tidemill.entrypoints import control, query, submit


def node(name: str, *after: Any, **fields: Any) -> dict[str, Any]:
    """A node of the scripted type, whose payload says its name."""
    payload = {"node": name, **fields.pop("payload", {})}
    return {"name": name, "type": "test.scripted", "payload": payload, "after": list(after), **fields}


def skip(parent: str) -> dict[str, str]:
    return {"node": parent, "on_failure": "skip"}


def on(parent: str) -> dict[str, str]:
    return {"node": parent, "on_failure": "continue"}


def posted(nodes: Sequence[Mapping[str, Any]], *, key: str | None = None, **fields: Any) -> Answer:
    headers = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
    return call(submit, "POST", "/flows", body=json.dumps({"nodes": nodes, **fields}), headers=headers)


def a_flow(*nodes: Mapping[str, Any]) -> str:
    answer = posted(nodes)
    assert (answer.status, answer.headers["Location"]) == (202, f"/flows/{answer.body['id']}"), answer.body
    return str(answer.body["id"])


def added(flow_id: str, *nodes: Mapping[str, Any]) -> Answer:
    headers = {"content-type": "application/json"}
    return call(submit, "POST", f"/flows/{flow_id}/nodes", body=json.dumps({"nodes": nodes}), headers=headers)


def seen(flow_id: str) -> Answer:
    return call(query, "GET", f"/flows/{flow_id}")


def states(flow_id: str) -> dict[str, str]:
    return {each["name"]: each["state"] for each in seen(flow_id).body["nodes"]}


def cancelled(flow_id: str) -> Answer:
    return call(control, "POST", f"/flows/{flow_id}/cancel")


def redriven(job_id: str) -> Answer:
    return call(control, "POST", f"/jobs/{job_id}/redrive")
