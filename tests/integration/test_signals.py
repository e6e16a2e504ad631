"""Waits for signals through the deployed functions: early, in time, late, twice; and the page that describes them."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.api_gateway import request
from tests.support.builders import SECOND
from tests.support.deployed_functions import Mill
from tests.support.documented_job_types import job_types_of, run_example
from tests.support.http_events import ROLE, Answer
from tidemill import Continue, Done, MissingInput, PermanentJobError, WaitFor
from tidemill.application.attempt.run import Run
from tidemill.domain.states import State
from tidemill.testing import Drive

ANOTHER = {**ROLE, "userId": "AROANOTHER:a-session"}
DAY = timedelta(days=1)
FACT = {"by": "ada"}


def signal(job_id: str, data: Any = FACT, *, name: str = "approval", **more: Any) -> Answer:
    headers = {"Content-Type": "application/json"}
    return request("POST", f"/jobs/{job_id}/signals/{name}", body=json.dumps(data).encode(), headers=headers, **more)


def waits(timeout: timedelta = DAY) -> Callable[[Any, Run], Any]:
    """Ends with what its run knows."""

    def handler(_payload: Any, run: Run) -> Any:
        if run.waited_for is None:
            return WaitFor("approval", timeout=timeout, checkpoint=[1])
        return Done({"told": run.signal("approval"), "timed_out": run.timed_out, "resumed": run.resumed_from})

    return handler


def is_problem(answer: Answer, status: int, code: str) -> None:
    assert (answer.status, answer.body["type"]) == (status, f"urn:tidemill:problem:{code}"), answer


@pytest.fixture
def waiting(mill: Mill) -> str:
    mill.script.handler = waits()
    job_id = mill.accepted()
    mill.run()
    return job_id


def test_a_job_that_waits_is_parked_and_uses_no_attempt(mill: Mill, waiting: str) -> None:
    job = mill.job(waiting)

    assert (job.state, job.attempt, job.hops, job.errors) == (State.PARKED, 0, 1, ())
    assert mill.get(waiting).body["wait"] | {"since": 0} == {"cause": "signal", "key": "approval", "since": 0}
    assert mill.depth(mill.queue) == 0


def test_a_signal_starts_the_job_and_its_run_has_the_data(mill: Mill, waiting: str) -> None:
    answer = signal(waiting)

    assert (answer.status, answer.body["state"]) == (200, "queued")
    assert [(each["name"], each["data"]) for each in answer.body["signals"]] == [("approval", FACT)]
    mill.run()
    job = mill.get(waiting).body
    assert job["result"] == {"told": FACT, "timed_out": False, "resumed": [1]}
    assert [entry["cause"] for entry in job["history"]][2:5] == ["waits: approval", "signal approval", "claimed"]


def test_an_early_signal_ends_the_wait_at_once(mill: Mill) -> None:
    mill.script.handler = waits()
    job_id = mill.accepted()

    assert signal(job_id).body["state"] == "queued"

    mill.run()
    assert mill.get(job_id).body["result"]["told"] == FACT


@pytest.mark.parametrize("name", ["approval", "other"])
def test_a_signal_during_the_run_is_not_lost(mill: Mill, name: str) -> None:
    runs: list[Any] = []

    def handler(_payload: Any, run: Run) -> Any:
        runs.append(run.signal(name))
        if len(runs) == 1:
            assert signal(run.job_id, name=name).status == 200
            return WaitFor("approval", timeout=DAY)
        return Done()

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()

    if name == "approval":
        assert (runs, mill.job(job_id).state) == ([None, FACT], State.SUCCEEDED)
    else:
        assert (runs, mill.job(job_id).state) == ([None], State.PARKED)
        assert [each.name for each in mill.job(job_id).signals.received] == [name]


def test_without_a_signal_the_job_runs_at_its_timeout(mill: Mill, waiting: str) -> None:
    mill.late = DAY - 60 * SECOND
    mill.wake()

    job = mill.job(waiting)
    assert (job.state, job.due, job.wait) == (State.QUEUED, job.signals.awaited and job.signals.awaited.until, None)
    mill.late = DAY + 5 * SECOND
    mill.run()
    assert mill.get(waiting).body["result"] == {"told": None, "timed_out": True, "resumed": [1]}


def test_a_signal_in_the_last_minutes_does_not_wait_for_the_timeout(mill: Mill, waiting: str) -> None:
    mill.late = DAY - 60 * SECOND
    mill.wake()

    signal(waiting)
    mill.run()

    assert mill.get(waiting).body["result"]["told"] == FACT


def test_a_repeated_signal_changes_nothing_and_another_value_is_refused(mill: Mill, waiting: str) -> None:
    first = signal(waiting, {"a": 1, "b": 2})
    assert signal(waiting, {"b": 2, "a": 1}) == first
    is_problem(signal(waiting, {"a": 2}), 409, "not-allowed-now")
    mill.run()

    # It has ended, and the caller still gets the answer to its own signal.
    assert signal(waiting, {"a": 1, "b": 2}).body["state"] == "succeeded"
    refused = signal(waiting, name="late")
    is_problem(refused, 409, "not-allowed-now")
    assert refused.body["detail"] == "the job is succeeded, so the signal late comes too late"


def test_the_jobs_of_another_tenant_look_missing(waiting: str) -> None:
    missing = signal("0199a5c2-7f11-7c3e-8a0e-5d5f3ad0c1b2")

    is_problem(missing, 404, "no-such-job")
    assert signal(waiting, iam=ANOTHER).body == missing.body


def test_the_limit_of_a_signal_is_that_of_its_compact_json(waiting: str) -> None:
    indented = json.dumps({str(number): number for number in range(300)}, indent=8).encode()
    assert len(indented) > 4096
    headers = {"Content-Type": "application/json"}

    assert request("POST", f"/jobs/{waiting}/signals/table", body=indented, headers=headers).status == 200
    beyond_ascii = signal(waiting, "\u6f22" * 700, name="name")

    is_problem(beyond_ascii, 413, "too-large")
    detail = "the signal is 4202 bytes as compact ASCII JSON; the limit is 4096 bytes"
    assert beyond_ascii.body["detail"] == detail


@pytest.mark.parametrize(
    ("name", "data", "status", "code"),
    [
        ("Approval", 1, 422, "invalid-body"),
        ("a" * 33, 1, 422, "invalid-body"),
        ("approval", "x" * 4097, 413, "too-large"),
    ],
)
def test_an_invalid_signal_is_refused(waiting: str, name: str, data: Any, status: int, code: str) -> None:
    is_problem(signal(waiting, data, name=name), status, code)


def test_a_job_has_a_bounded_number_of_signals(mill: Mill, waiting: str) -> None:
    for number in range(16):
        assert signal(waiting, name=f"n{number}").status == 200
    is_problem(signal(waiting, name="n16"), 409, "not-allowed-now")


def test_a_run_that_waits_again_for_what_it_has_seen_waits_for_another_value(mill: Mill) -> None:
    told: list[Any] = []

    def handler(_payload: Any, run: Run) -> Any:
        told.append(run.signal("address"))
        if told[-1] != "right":
            raise MissingInput("address", after=DAY)
        return Done()

    mill.script.handler = handler
    job_id = mill.accepted()
    for value in ("wrong", "wrong", "right"):
        mill.run()
        signal(job_id, value, name="address")
    mill.run()

    # The repeated value starts nothing.
    assert (told, mill.job(job_id).state) == ([None, "wrong", "right"], State.SUCCEEDED)


def test_an_input_that_never_comes_ends_the_job_with_its_own_reason(mill: Mill) -> None:
    def handler(_payload: Any, _run: Run) -> Any:
        raise MissingInput("address", after=timedelta(0), most=2)

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()

    job = mill.job(job_id)
    assert (job.state, job.death, job.attempt, job.hops) == (State.DEAD, "missing input", 1, 2)
    assert job.errors[-1].message == "the input address did not come in 2 waits"
    assert mill.depth(mill.dead_letters) == 1


def test_an_input_that_comes_each_time_never_ends_the_job(mill: Mill) -> None:
    def handler(_payload: Any, run: Run) -> Any:
        if run.waited_for is None or run.hops % 2 == 0:
            raise MissingInput("page", after=DAY, most=2)
        return Done() if run.hops > 8 else Continue(run.hops)

    mill.script.handler = handler
    job_id = mill.accepted()
    for page in range(6):
        mill.run()
        signal(job_id, page, name="page")
    mill.run()

    job = mill.job(job_id)
    assert (job.state, job.death) == (State.SUCCEEDED, None)


@pytest.mark.parametrize("name", ["address", "other"])
def test_a_signal_during_the_last_run_that_lacks_it_starts_the_job_again(mill: Mill, name: str) -> None:
    told: list[Any] = []

    def handler(_payload: Any, run: Run) -> Any:
        told.append(run.signal("address"))
        if len(told) == 3:
            assert signal(run.job_id, "right", name=name).status == 200
        if told[-1] != "right":
            raise MissingInput("address", after=timedelta(0), most=2)
        return Done()

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()

    if name == "address":
        assert (told, mill.job(job_id).state) == ([None, None, None, "right"], State.SUCCEEDED)
    else:
        assert (told, mill.job(job_id).death) == ([None, None, None], "missing input")


def test_a_wrong_input_during_the_last_run_does_not_make_the_waits_endless(mill: Mill) -> None:
    runs: list[str] = []

    def handler(_payload: Any, run: Run) -> Any:
        runs.append(run.job_id)
        if len(runs) == 3:
            assert signal(run.job_id, "wrong", name="address").status == 200
        raise MissingInput("address", after=timedelta(0), most=2)

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()

    assert (len(runs), mill.job(job_id).death) == (4, "missing input")


def test_a_retry_after_the_timeout_still_knows_that_it_timed_out(mill: Mill) -> None:
    seen: list[tuple[str | None, bool, int]] = []

    def handler(_payload: Any, run: Run) -> Any:
        seen.append((run.waited_for, run.timed_out, run.attempt))
        if len(seen) == 1:
            return WaitFor("approval", timeout=timedelta(0))
        if len(seen) == 2:
            raise ValueError
        return Done()

    mill.script.handler = handler
    mill.accepted()
    mill.run()
    mill.late = timedelta(minutes=1)
    mill.run()

    assert seen == [(None, False, 1), ("approval", True, 1), ("approval", True, 2)]


def test_a_redrive_keeps_the_signals_and_forgets_the_wait(mill: Mill, waiting: str) -> None:
    signal(waiting)

    def broken(_payload: Any, _run: Run) -> Any:
        raise PermanentJobError("no")

    mill.script.handler = broken
    mill.run()
    assert mill.job(waiting).state is State.DEAD

    mill.script.handler = waits()
    request("POST", f"/jobs/{waiting}/redrive")

    job = mill.job(waiting)
    assert ([each.name for each in job.signals.received], job.signals.awaited) == (["approval"], None)
    mill.run()
    assert mill.get(waiting).body["result"]["told"] == FACT


def test_the_job_type_of_the_page_waits_and_ends_as_the_page_says() -> None:
    with job_types_of("signals.md") as known:
        run_example("signals.md", "from functions.jobs")
        ship = known.get("order.ship")

    late = Drive(ship, {"number": "7", "address": "Main St 1", "euros": 5000})
    late.run()
    assert late.run().job.death == "gave up"

    lacking = Drive(ship, {"number": "7"})
    assert lacking.run_until_it_ends().job.death == "missing input"
    told = Drive(ship, {"number": "7"})
    told.run()
    told.signal("address", "Main St 1")
    assert told.run().result == {"shipped_to": "Main St 1"}
