"""Jobs of a batch handler as nodes of a flow and as members of a batch: one call, and an outcome for each."""

import json

import pytest

from tests.support.deployed_functions import Mill, forget
from tests.support.flow_calls import a_flow, node, states
from tests.support.http_events import call
from tests.support.jobs.batched import BatchScript
from tidemill import PermanentJobError, Run
from tidemill.domain.states import State
from tidemill.entrypoints import control, submit
from tidemill.names import BATCH_PACKAGE, FLOW_PACKAGE, Env

TYPE = "test.batched"
JSON = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
def _flows_and_batches(mill: Mill, calls: BatchScript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{FLOW_PACKAGE},{BATCH_PACKAGE}")
    forget()
    calls.handler = lambda payloads, _runs: [payload.n for payload in payloads]


def test_nodes_of_a_flow_share_a_call_and_each_result_reaches_the_next_node(mill: Mill, calls: BatchScript) -> None:
    found: dict[str, object] = {}

    def join(_payload: object, run: Run) -> None:
        found.update(run.parents)

    mill.script.handler = join
    parents = [node(f"part-{number}", payload={"n": number}, type=TYPE) for number in range(3)]
    flow = a_flow(*parents, node("join", *(f"part-{number}" for number in range(3))))

    mill.run()

    assert calls.calls == [[0, 1, 2]]
    assert found == {"part-0": 0, "part-1": 1, "part-2": 2}
    assert set(states(flow).values()) == {"succeeded"}


def test_members_of_a_batch_share_a_call_and_one_that_dies_ends_the_batch_as_failed(
    mill: Mill, calls: BatchScript
) -> None:
    calls.handler = lambda payloads, _runs: [payload.n or PermanentJobError("the first one") for payload in payloads]
    body = {"on_failure": {"type": "test.noop", "payload": {}}}
    batch_id = str(call(submit, "POST", "/batches", body=json.dumps(body), headers=JSON).body["id"])
    members = [mill.accepted({"n": number}, job_type=TYPE, batch=batch_id) for number in range(3)]
    call(control, "POST", f"/batches/{batch_id}/close")

    mill.run()

    assert calls.calls == [[0, 1, 2]]
    assert sorted(mill.job(member).state for member in members) == [State.DEAD, State.SUCCEEDED, State.SUCCEEDED]
    assert mill.job(batch_id).state is State.DEAD
