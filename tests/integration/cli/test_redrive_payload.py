"""`redrive --payload`: the deployed model decides, and only then something is written."""

import json
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import A_SIGNAL, brought_to, stored
from tidemill.domain.states import State
from tidemill.names import BATCH_TYPE, EVENT_TYPE, FLOW_TYPE

OTHER = {"n": 2}


class Tick:
    """Stands in for the client of Lambda: the function `tick`."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.events: list[Mapping[str, Any]] = []

    def invoke(self, *, FunctionName: str, Qualifier: str, Payload: str) -> Mapping[str, Any]:  # noqa: N803 - as in the API
        self.events.append({"function": f"{FunctionName}:{Qualifier}"} | json.loads(Payload))
        return {"Payload": BytesIO(json.dumps({"faults": self.faults}).encode())}


@pytest.fixture(autouse=True)
def tick(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Tick:
    stack = cloud.server.stacks[0]
    cloud.server.stacks[0] = replace(stack, outputs={**stack.outputs, "Functions": '{"tick": "f-tick"}'})
    tick = Tick()
    monkeypatch.setattr("tidemill.operator.deployments.function_call.invocations", lambda: tick)
    return tick


def test_a_dead_job_is_redriven_with_the_payload_of_a_file(cloud: Cloud, tick: Tick, tmp_path: Path) -> None:
    job = cloud.dead_job()
    file = tmp_path / "other.json"
    file.write_text(json.dumps(OTHER), encoding="utf-8")

    result = run("redrive", job.id, "--payload", f"@{file}", "--reason", "a typo", "--yes")

    assert (result.exit_code, result.stdout) == (0, "Redrove 1 of 1 job.\n")
    found = stored(cloud.store, job)
    assert (found.state, found.payload.text) == (State.QUEUED, '{"n":2}')
    (event,) = tick.events
    assert (event["function"], event["type"], event["payload"]) == ("f-tick:live", job.type, OTHER)
    (entry,) = map(json.loads, run("audit", "--json").stdout.splitlines())
    assert (entry["command"], entry["reason"], entry["counts"]["written"]) == ("redrive", "a typo", 1)
    assert entry["options"]["payload"] == "replaced"
    assert "redriven with another payload by arn:aws:sts:" in " ".join(run("explain", job.id).stdout.split())


def test_a_payload_that_does_not_fit_changes_nothing(cloud: Cloud, tick: Tick) -> None:
    job = cloud.dead_job()
    tick.faults = ["/payload/n: Field required"]
    before = cloud.contents()

    result = run("redrive", job.id, "--payload", "{}", "--yes")

    assert result.exit_code == 1
    error = " ".join(result.stderr.split())
    assert f"the payload does not fit the type {job.type}: /payload/n: Field required" in error
    assert cloud.contents() == before


@pytest.mark.parametrize("type_", [FLOW_TYPE, BATCH_TYPE, EVENT_TYPE])
def test_a_job_of_a_built_in_type_keeps_its_payload(cloud: Cloud, tick: Tick, type_: str) -> None:
    job = cloud.dead_job(type=type_)

    result = run("redrive", job.id, "--payload", "{}", "--yes")

    assert result.exit_code == 1
    assert f"is of the type {type_}, whose payload cannot be replaced" in " ".join(result.stderr.split())
    assert (stored(cloud.store, job), tick.events) == (job, [])


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED])
def test_a_job_that_is_not_dead_is_refused(cloud: Cloud, tick: Tick, state: State) -> None:
    job = brought_to(cloud.store, state)

    result = run("redrive", job.id, "--payload", "{}", "--yes")

    assert result.exit_code == 1
    assert f"job {job.id} is {state}, and only a dead job is redriven" in " ".join(result.stderr.split())
    assert tick.events == []


def test_a_dry_run_compares_the_payload_says_what_it_drops_and_changes_nothing(cloud: Cloud, tick: Tick) -> None:
    job = cloud.dead_job(signals=(A_SIGNAL,), checkpoint="[1]")

    result = run("redrive", job.id, "--payload", "{}", "--dry-run")

    plan = (
        f"Redrive {job.id} of the type test.job with another payload of 2 bytes. "
        "It drops what the present payload was given: checkpoint, signals."
    )
    assert (result.exit_code, " ".join(result.stdout.split()), len(tick.events)) == (0, plan, 1)
    assert stored(cloud.store, job) == job


def test_the_plan_of_a_dry_run_is_one_json_object_if_asked_for(cloud: Cloud, tick: Tick) -> None:
    job = cloud.dead_job()

    result = run("redrive", job.id, "--payload", "{}", "--dry-run", "--json")

    assert json.loads(result.stdout) == {"jobs": 1, "id": job.id, "payload_bytes": 2, "drops": []}
    assert (stored(cloud.store, job), len(tick.events)) == (job, 1)


@pytest.mark.parametrize(
    "arguments",
    [("--all",), ("a", "b"), ("a", "--type", "test.job"), ("a", "--rate", "5"), ("--type", "test.job")],
)
def test_a_payload_is_for_one_job(arguments: tuple[str, ...]) -> None:
    result = run("redrive", *arguments, "--payload", "{}", "--yes")

    assert result.exit_code == 2
    assert "--payload requires one ID" in " ".join(result.stderr.split())
