"""`flow`: the caller's own flows over the API."""

import json

import pytest

from tests.integration.cli.conftest import run
from tests.support.builders import TENANT
from tests.support.deployed_functions import Mill, forget
from tests.support.flow_calls import a_flow, node, skip
from tidemill.application.flows import flow_view
from tidemill.names import FLOW_PACKAGE, Env


@pytest.fixture(autouse=True)
def _flows(behind: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    del behind
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{FLOW_PACKAGE}")
    forget()


def test_a_flow_is_shown_as_a_table_as_json_and_as_a_flowchart(behind: Mill) -> None:
    flow = a_flow(node("charge"), node("ship", "charge"), node("note", skip("ship")))
    head, titles, *rows = run("flow", flow).stdout.splitlines()
    assert head == f"{flow}  queued: 3 pending"
    assert titles.split() == ["NODE", "TYPE", "STATE", "AFTER", "JOB"]
    assert "pending, waits for charge" in rows[1]
    assert "ship (skip)" in rows[2]
    behind.run()
    assert json.loads(run("flow", flow, "--json").stdout)["counts"] == {"succeeded": 3}
    assert run("flow", flow, "--mermaid").stdout.splitlines() == [
        "flowchart TD",
        '    n0["charge<br/>succeeded"]:::succeeded',
        '    n1["ship<br/>succeeded"]:::succeeded',
        '    n2["note<br/>succeeded"]:::succeeded',
        "    n0 --> n1",
        "    n1 -. skip .-> n2",
    ]


def test_the_pages_of_a_large_flow_are_shown_together(behind: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = a_flow(node("charge"), node("ship", "charge"), node("note", skip("ship")))
    whole = run("flow", flow, "--json").stdout
    monkeypatch.setattr(flow_view, "LARGEST_PAGE_BYTES", 1)

    assert run("flow", flow, "--json").stdout == whole
    assert len(json.loads(whole)["nodes"]) == 3
    assert "cursor" not in json.loads(whole)


def test_operators_see_a_flow_of_any_tenant(behind: Mill) -> None:
    flow = a_flow(node("charge"), node("ship", "charge"))
    found = json.loads(run("flow", flow, "--tenant", TENANT, "--json").stdout)
    assert [each["waits_for"] for each in found["nodes"]] == [[], ["charge"]]
    behind.run()
    assert run("flow", flow, "--tenant", TENANT).stdout.splitlines()[0] == f"{flow}  succeeded: 2 succeeded"
    assert "tenant other has no job" in run("flow", flow, "--tenant", "other").stderr
    assert run("flow", flow, "--tenant", TENANT, "--cancel").exit_code == 2
    job = str(found["nodes"][0]["job_id"] or behind.accepted())
    assert "no flow" in run("flow", job, "--tenant", TENANT).stderr


def test_a_flow_is_cancelled(behind: Mill) -> None:
    flow = a_flow(node("charge"), node("ship", "charge"))
    assert "being cancelled" in run("flow", flow, "--cancel").stdout
    behind.run()
    assert run("flow", flow).stdout.splitlines()[0] == f"{flow}  cancelled: 2 cancelled"


def test_wrong_usage_and_an_unknown_flow_are_refused(behind: Mill) -> None:
    assert run("flow", "none", "--json", "--mermaid").exit_code == 2
    assert "no flow with this id" in run("flow", "none").stderr
    assert behind.stored() == 0
