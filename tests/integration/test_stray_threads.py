"""A handler that runs beyond its time: its worker does all that is left to do for the batch, then ends its process."""

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from tests.support.deployed_functions import JOB_TIMEOUT, TENANT, Event, Mill, ProcessEndedError
from tests.support.patience import PATIENCE_SECONDS
from tidemill import composition
from tidemill.aws import clients
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.local.wait import wait_until
from tidemill.metrics import Metric

#: The timeout of `test.quick` and `test.quick_limited`.
QUICK = timedelta(seconds=0.2)


@pytest.fixture(autouse=True)
def _stopped_clock(mill: Mill, unhurried: None) -> None:
    """Only the test moves the clock."""
    mill.stop_clock()


class Scenario:
    """Job 0 overruns. The others run until it has been settled."""

    def __init__(self, mill: Mill, gate: threading.Event, *, stray_type: str = "test.quick") -> None:
        self.mill = mill
        self._gate = gate
        self._begun = threading.Event()
        self.runs: list[int] = []
        mill.script.handler = self.handler
        self.stray = mill.accepted({"n": 0}, job_type=stray_type)

    def handler(self, payload: Any, _run: Any) -> None:
        self.runs.append(payload.n)
        if payload.n == 0:
            self._begun.set()
            self._gate.wait(PATIENCE_SECONDS)
        else:
            self.let_stray_expire()

    def let_stray_expire(self) -> None:
        self._begun.wait(PATIENCE_SECONDS)
        self.mill.late = QUICK
        settled = self.stray
        wait_until(lambda: self.mill.job(settled).state is State.RETRYING, PATIENCE_SECONDS, "the stray to be settled")

    def received(self) -> Event:
        self.mill.publish()
        return self.mill.receive()

    def ends_its_process(self, event: Event) -> None:
        with pytest.raises(ProcessEndedError):
            self.mill.work(event)


def test_the_rest_of_the_batch_ends_as_if_the_process_lived(
    mill: Mill, gate: threading.Event, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = Scenario(mill, gate)
    done, leased = mill.accepted({"n": 1}), mill.accepted({"n": 2})
    event = scenario.received()
    now = mill.now()
    composition.parts().store.claim(
        reference_to(mill.job(leased)), token="another", now=now, lease_end=now + timedelta(seconds=90)
    )

    scenario.ends_its_process(event)

    assert (mill.job(done).state, mill.job(done).attempt) == (State.SUCCEEDED, 1)
    assert mill.job(scenario.stray).errors[0].error_class == "JobTimeoutError"
    # The message of the leased job stays until its lease ends. The others are deleted, though no answer was given.
    assert [hidden["VisibilityTimeout"] for hidden in mill.hidden] == [90]
    assert mill.depth(mill.queue) == 1
    assert _counted(capsys, Metric.STRAY_THREADS) == 1


def test_a_handler_that_returns_before_its_batch_has_ended_costs_no_process(mill: Mill, gate: threading.Event) -> None:
    scenario = Scenario(mill, gate)
    mill.accepted({"n": 1})
    ended = threading.Event()

    def handler(payload: Any, run: Any) -> None:
        scenario.handler(payload, run)
        if payload.n == 0:
            ended.set()
        else:
            gate.set()
            ended.wait(PATIENCE_SECONDS)

    mill.script.handler = handler

    assert mill.work(scenario.received()) == []


def test_the_next_job_of_a_group_starts_in_another_process(mill: Mill, gate: threading.Event) -> None:
    scenario = Scenario(mill, gate)
    first, second = (
        composition.parts()
        .submit(Submission(type="test.scripted", payload={"n": n}, group="orders"), tenant=TENANT, trace="")
        .job.id
        for n in (1, 2)
    )

    scenario.ends_its_process(scenario.received())

    assert sorted(scenario.runs) == [0, 1]
    assert (mill.job(first).state, mill.job(second).state) == (State.SUCCEEDED, State.WAITING)


def test_a_job_that_is_claimed_but_not_started_runs_in_another_process(
    mill: Mill, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario(mill, gate)
    slow = mill.accepted({"n": 1})
    payloads = composition.parts().payloads
    load = payloads.load

    def load_slowly(job: Any) -> str:
        if job.id == slow:
            scenario.let_stray_expire()
        return load(job)

    monkeypatch.setattr(payloads, "load", load_slowly)

    scenario.ends_its_process(scenario.received())

    assert scenario.runs == [0]
    assert (mill.job(slow).state, mill.job(slow).attempt) == (State.QUEUED, 0)


def test_a_claim_without_an_answer_yet_is_given_back_before_the_process_ends(
    mill: Mill, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario(mill, gate)
    slow = mill.accepted({"n": 1})
    event = scenario.received()
    deleting = threading.Event()
    store, queues = composition.parts().store, clients.sqs()
    claim, delete = store.claim, queues.delete_message_batch

    def claim_slowly(reference: Any, **named: Any) -> Any:
        claimed = claim(reference, **named)
        if reference.job_id == slow:
            scenario.let_stray_expire()
            mill.late = JOB_TIMEOUT
            deleting.wait(PATIENCE_SECONDS)
        return claimed

    def delete_and_tell(**request: Any) -> Any:
        deleting.set()
        return delete(**request)

    monkeypatch.setattr(store, "claim", claim_slowly)
    monkeypatch.setattr(queues, "delete_message_batch", delete_and_tell)

    scenario.ends_its_process(event)

    assert (mill.job(slow).state, mill.job(slow).attempt, mill.job(slow).lease.owner) == (State.RETRYING, 0, None)


def test_the_limit_slot_of_a_stray_is_free_when_its_process_has_ended(mill: Mill, gate: threading.Event) -> None:
    scenario = Scenario(mill, gate, stray_type="test.quick_limited")
    mill.accepted({"n": 1})
    scenario.ends_its_process(scenario.received())

    mill.script.handler = lambda _payload, _run: None
    mill.publish()
    assert mill.work(mill.receive()) == []

    assert mill.job(scenario.stray).state is State.SUCCEEDED


def test_the_process_ends_although_sqs_does_not_answer(
    mill: Mill, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario(mill, gate)
    done = mill.accepted({"n": 1})
    event = scenario.received()

    def unanswered(**_request: Any) -> Any:
        raise EndpointConnectionError(endpoint_url=mill.queue)

    monkeypatch.setattr(clients.sqs(), "delete_message_batch", unanswered)

    scenario.ends_its_process(event)

    # The messages return after the visibility timeout. Their documents then refuse them.
    assert (mill.job(done).state, mill.depth(mill.queue)) == (State.SUCCEEDED, 2)


def _counted(capsys: pytest.CaptureFixture[str], metric: Metric) -> float:
    """The sum of a metric in the embedded-format lines that were written."""
    lines = (line for line in capsys.readouterr().out.splitlines() if f'"{metric}"' in line)
    return float(sum(json.loads(line)[metric] for line in lines))
