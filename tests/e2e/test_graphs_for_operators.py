"""Flows and batches as operators meet them: explanations, logs, listings and exports, from the command line."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Deployed, Tidemill
from tests.e2e.test_flows import node, started, states


def exported(tidemill: Tidemill, path: Path) -> list[dict[str, Any]]:
    done = tidemill("export", "--to", str(path))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_flow_is_explained_logged_and_exported(deployed: Deployed, tidemill: Tidemill, tmp_path: Path) -> None:
    flow = started(
        deployed,
        node("first"),
        node("ask", "first", type_="demo.give_up", guest="Ada", reconsiders=False),
        node("last", "ask"),
    )
    states(deployed, flow, once="dead")
    tenant = deployed.tenant_of(flow)

    why = tidemill("explain", flow).stdout
    assert "failed nodes: ask; redrive the flow" in why, why
    found = json.loads(tidemill("flow", flow, "--tenant", tenant, "--json").stdout)
    by_name = {each["name"]: each for each in found["nodes"]}
    assert {name: each["state"] for name, each in by_name.items()} == {
        "first": "succeeded",
        "ask": "dead",
        "last": "blocked",
    }
    asked = by_name["ask"]["job_id"]
    assert f"as the node ask of the flow {flow}" in tidemill("explain", asked).stdout

    for job_id in (flow, asked):
        lines = [json.loads(line)["line"] for line in tidemill("logs", job_id, "--json").stdout.splitlines()]
        assert {line["job_id"] for line in lines} == {job_id}
        assert lines[-1]["message"] == "dead-letter message sent"

    jobs = exported(tidemill, tmp_path / "jobs.jsonl")
    assert {job["node"] for job in jobs if job["flow"] == flow} == {"first", "ask", "last"}


def test_a_batch_is_explained_logged_and_exported(deployed: Deployed, tidemill: Tidemill, tmp_path: Path) -> None:
    batch = str(deployed.app.request("POST", "/batches", body=b"{}").json()["id"])
    members = {deployed.accepted("demo.flaky", {"failures": 0}, batch=batch) for _ in range(3)}
    for member in members:
        deployed.until(member, state="succeeded")
    assert f"its owner closes it with `tidemill batch {batch} --close`" in tidemill("explain", batch).stdout
    tenant = deployed.tenant_of(batch)
    assert "open, 3 of 3 jobs at rest: 3 succeeded" in tidemill("batch", batch, "--tenant", tenant).stdout

    assert "closed, 3 of 3 jobs at rest" in tidemill("batch", batch, "--close").stdout
    deployed.until(batch, state="succeeded")
    assert "Its jobs: 3 succeeded." in tidemill("explain", batch).stdout
    lines = [json.loads(line)["line"] for line in tidemill("logs", batch, "--json").stdout.splitlines()]
    assert lines[-1]["message"] == "succeeded"
    assert {job["id"] for job in exported(tidemill, tmp_path / "jobs.jsonl") if job["batch"] == batch} == members
