"""Flows and batches as operators meet them: explanations, logs, listings and exports, from the command line."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Deployed, Tidemill
from tests.e2e.test_flows import node, started, states
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.wait import wait_until


def exported(tidemill: Tidemill, path: Path) -> list[dict[str, Any]]:
    done = tidemill("export", "--to", str(path))
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in path.read_text().splitlines()]


def logged(tidemill: Tidemill, job_id: str, *, last: str) -> list[dict[str, Any]]:
    """The log lines of a job, once the last one has this message."""

    def there() -> list[dict[str, Any]]:
        lines = [json.loads(line)["line"] for line in tidemill("logs", job_id, "--json").stdout.splitlines()]
        return lines if lines and lines[-1]["message"] == last else []

    return wait_until(there, PATIENCE_SECONDS, f"the line {last!r} of job {job_id}")


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
        # The publisher writes the last line, some time after the job is dead.
        lines = logged(tidemill, job_id, last="dead-letter message sent")
        assert {line["job_id"] for line in lines} == {job_id}

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
    assert logged(tidemill, batch, last="succeeded")
    assert {job["id"] for job in exported(tidemill, tmp_path / "jobs.jsonl") if job["batch"] == batch} == members
