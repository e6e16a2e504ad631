"""A batch within an invocation's time: overlapped, bounded, and answered in every case."""

import json
import threading
from datetime import timedelta
from typing import Any

import pytest

from tests.support.deployed_functions import INVOCATION, JOB_TIMEOUT, Context, Event, Mill, ProcessEndedError
from tests.support.faulty_client import Fault
from tests.support.patience import PATIENCE_SECONDS
from tidemill import composition
from tidemill.application.attempt.attempt import CLOCK_SKEW_MARGIN
from tidemill.application.attempt.run import Run
from tidemill.application.attempt.settle import SETTLE_TRIES
from tidemill.domain.attempt.return_values import Done
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.errors import JobTimeoutError
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.entrypoints import work
from tidemill.local.wait import wait_until
from tidemill.names import SETTLE_RESERVE_SECONDS
from tidemill.worker.message_run import MessageRun

BATCH = 10
SHORT = timedelta(seconds=0.2)


@pytest.fixture
def short(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs may take very little time, by a clock that only the test moves."""
    mill.stop_clock()
    monkeypatch.setenv("TIDEMILL_JOB_TIMEOUT_SECONDS", str(SHORT.total_seconds()))
    work.worker.cache_clear()


def _batch(mill: Mill, size: int) -> tuple[list[str], Event]:
    job_ids = [mill.accepted({"n": number}) for number in range(size)]
    mill.publish()
    return job_ids, mill.receive()


def test_the_jobs_of_a_batch_run_in_parallel(mill: Mill) -> None:
    barrier = threading.Barrier(BATCH, timeout=PATIENCE_SECONDS)
    mill.script.handler = lambda _payload, _run: bool(barrier.wait() + 1)
    job_ids, event = _batch(mill, BATCH)

    assert mill.work(event) == []

    assert {mill.job(job_id).result for job_id in job_ids} == {"true"}


def test_a_job_past_the_timeout_of_its_lane_fails_and_its_batch_is_answered_in_time(
    mill: Mill, short: None, unhurried: None, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    def handler(payload: Any, _run: Run) -> str:
        if payload.n == 0:
            begun.set()
            gate.wait(PATIENCE_SECONDS)
            ended.set()
        else:
            begun.wait(PATIENCE_SECONDS)
        return "done"

    mill.script.handler = handler
    (late, quick), event = _batch(mill, 2)
    store = composition.parts().store
    settle = store.settle

    def settle_and_let_time_pass(*arguments: Any, **keywords: Any) -> None:
        settle(*arguments, **keywords)
        mill.late = SHORT

    monkeypatch.setattr(store, "settle", settle_and_let_time_pass)

    with pytest.raises(ProcessEndedError):
        mill.work(event)

    assert mill.job(quick).state is State.SUCCEEDED
    failed = mill.job(late)
    assert (failed.state, failed.errors[0].error_class) == (State.RETRYING, "JobTimeoutError")
    assert failed.errors[0].message == "it took longer than the 0.2 s that lane default allows"
    before = mill.table.item(failed)
    gate.set()
    assert ended.wait(PATIENCE_SECONDS)
    _until_threads_end()
    assert mill.table.item(failed) == before


def test_a_job_past_its_own_timeout_is_stopped_and_settled_while_its_batch_continues(
    mill: Mill, unhurried: None, gate: threading.Event
) -> None:
    begun, settled, told = threading.Event(), threading.Event(), threading.Event()

    def handler(payload: Any, run: Run) -> str:
        if payload.n == 0:
            begun.set()
            gate.wait(PATIENCE_SECONDS)
            try:
                run.checkpoint()
            except JobTimeoutError:
                told.set()
                raise
        else:
            begun.wait(PATIENCE_SECONDS)
            # Longer than `timeout_seconds` of test.quick, and shorter than the timeout of the lane.
            mill.late = JOB_TIMEOUT / 2
            wait_until(lambda: mill.job(late).state is State.RETRYING, PATIENCE_SECONDS, "the late job to be settled")
            settled.set()
        return "done"

    mill.script.handler = handler
    mill.stop_clock()
    late, other = mill.accepted({"n": 0}, job_type="test.quick"), mill.accepted({"n": 1})
    mill.publish()

    with pytest.raises(ProcessEndedError):
        mill.work(mill.receive())

    assert settled.is_set()
    assert (mill.job(late).errors[0].error_class, mill.job(other).state) == ("JobTimeoutError", State.SUCCEEDED)
    said = "it took longer than the 0.2 s that `timeout_seconds` of test.quick allows"
    assert mill.job(late).errors[0].message == said
    gate.set()
    assert told.wait(PATIENCE_SECONDS)
    _until_threads_end()


def test_a_store_that_hangs_until_the_deadline_does_not_delay_the_answer_of_the_batch(
    mill: Mill, short: None, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:

    def handler(_payload: Any, _run: Run) -> None:
        mill.late = SHORT

    mill.script.handler = handler
    (job_id,), event = _batch(mill, 1)
    store = composition.parts().store
    real = store.settle

    def hanging(*arguments: Any, **keywords: Any) -> None:
        gate.wait(PATIENCE_SECONDS)
        real(*arguments, **keywords)

    monkeypatch.setattr(store, "settle", hanging)

    assert len(mill.work(event)) == 1

    assert mill.job(job_id).state is State.RUNNING
    lease = INVOCATION + CLOCK_SKEW_MARGIN
    assert lease.total_seconds() - 2 <= mill.hidden[0]["VisibilityTimeout"] <= lease.total_seconds()
    gate.set()
    _until_threads_end()


def test_a_claim_that_hangs_until_the_deadline_is_put_back_at_once(
    mill: Mill, short: None, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[Any] = []
    mill.script.handler = lambda payload, _run: runs.append(payload)
    _, event = _batch(mill, 1)
    store = composition.parts().store
    real = store.claim

    def hanging(*arguments: Any, **keywords: Any) -> Any:
        mill.late = SHORT
        gate.wait(PATIENCE_SECONDS)
        return real(*arguments, **keywords)

    monkeypatch.setattr(store, "claim", hanging)

    assert len(mill.work(event)) == 1

    assert mill.hidden[0]["VisibilityTimeout"] == 0
    gate.set()
    _until_threads_end()
    assert runs == []


@pytest.mark.parametrize("missing", [timedelta(milliseconds=1), JOB_TIMEOUT])
def test_without_enough_time_for_a_job_all_messages_are_put_back_at_once(mill: Mill, missing: timedelta) -> None:
    job_ids, event = _batch(mill, 3)
    before = mill.calls.copy()
    enough = JOB_TIMEOUT + timedelta(seconds=SETTLE_RESERVE_SECONDS)

    kept = mill.work(event, Context(enough - missing))

    assert sorted(kept) == sorted(record["messageId"] for record in event["Records"])
    assert [hidden["VisibilityTimeout"] for hidden in mill.hidden] == [0, 0, 0]
    assert mill.calls["dynamodb.UpdateItem"] == before["dynamodb.UpdateItem"]
    assert {mill.job(job_id).attempt for job_id in job_ids} == {0}


def test_a_job_starts_with_exactly_enough_time_left(mill: Mill) -> None:
    (job_id,), event = _batch(mill, 1)

    assert mill.work(event, Context(JOB_TIMEOUT + timedelta(seconds=SETTLE_RESERVE_SECONDS))) == []
    assert mill.job(job_id).state is State.SUCCEEDED


def test_an_unanswered_call_to_the_store_puts_back_only_its_own_message(mill: Mill) -> None:
    job_ids, event = _batch(mill, 3)
    mill.client.faults = [Fault.NOT_SENT]

    assert len(mill.work(event)) == 1

    assert 1 <= mill.hidden[0]["VisibilityTimeout"] <= 30
    assert sorted(mill.job(job_id).state for job_id in job_ids) == [State.QUEUED, State.SUCCEEDED, State.SUCCEEDED]


def test_a_settle_without_an_answer_puts_its_message_back_until_the_lease_expires(mill: Mill) -> None:
    (job_id,), event = _batch(mill, 1)
    mill.client.faults = [None, *[Fault.NOT_SENT] * SETTLE_TRIES]

    assert len(mill.work(event)) == 1
    assert mill.hidden[0]["VisibilityTimeout"] >= INVOCATION.total_seconds()
    assert mill.job(job_id).state is State.RUNNING


def test_a_settle_whose_answer_is_lost_is_recognised_as_done(mill: Mill) -> None:
    (job_id,), event = _batch(mill, 1)
    mill.client.faults = [None, Fault.ANSWER_LOST]

    assert mill.work(event) == []
    assert mill.job(job_id).state is State.SUCCEEDED


def test_a_handler_that_calls_exit_harms_no_other_job_of_its_batch(mill: Mill) -> None:
    def handler(payload: Any, _run: Run) -> None:
        if payload.n == 1:
            raise SystemExit(1)

    mill.script.handler = handler
    job_ids, event = _batch(mill, 3)

    assert mill.work(event) == []

    assert [mill.job(job_id).state for job_id in job_ids] == [State.SUCCEEDED, State.RETRYING, State.SUCCEEDED]


def _until_threads_end() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPoolExecutor"):
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()


def test_a_job_that_may_have_killed_its_worker_runs_after_the_rest_of_its_batch(mill: Mill) -> None:
    order: list[int] = []
    mill.script.handler = lambda payload, _run: order.append(payload.n)
    suspect, *mates = (mill.accepted({"n": number}) for number in range(4))
    mill.publish()
    event = mill.receive()
    _killed_before(mill, suspect)

    assert mill.work(event) == []

    assert order[-1] == 0
    assert {mill.job(job_id).state for job_id in (suspect, *mates)} == {State.SUCCEEDED}


def test_one_of_two_suspected_jobs_in_a_batch_is_released_without_using_an_attempt(mill: Mill) -> None:
    job_ids, event = _batch(mill, 2)
    for job_id in job_ids:
        _killed_before(mill, job_id)

    assert mill.work(event) == []

    states = sorted((mill.job(job_id).state, mill.job(job_id).attempt) for job_id in job_ids)
    assert states == [(State.QUEUED, 1), (State.SUCCEEDED, 2)]


def test_a_fault_in_the_thread_of_a_message_is_logged_and_harms_no_other_job(
    mill: Mill, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a job does comes so far, so the fault is one of the engine."""
    job_ids, event = _batch(mill, 2)
    run = MessageRun.run

    def broken(self: MessageRun, invocation: Any) -> None:
        if self.reference and self.reference.job_id == job_ids[0]:
            raise RuntimeError("a fault")
        run(self, invocation)

    monkeypatch.setattr(MessageRun, "run", broken)
    capsys.readouterr()

    assert len(mill.work(event)) == 1

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (line,) = [line for line in lines if line["message"] == "the thread of a message failed"]
    assert line["exception"].endswith("RuntimeError: a fault")
    assert [mill.job(job_id).state for job_id in job_ids] == [State.QUEUED, State.SUCCEEDED]


def _killed_before(mill: Mill, job_id: str) -> None:
    """Return the job after a worker claimed it and died, once its lease is over."""
    job = mill.job(job_id)
    now = mill.now()
    composition.parts().store.claim(reference_to(job), token="killed", now=now, lease_end=now)


def test_a_message_that_is_put_back_is_one_line_without_a_traceback(
    mill: Mill, capsys: pytest.CaptureFixture[str]
) -> None:
    mill.accepted()
    mill.publish()
    event = mill.receive()
    mill.client.faults = [Fault.NOT_SENT] * 10
    capsys.readouterr()

    assert len(mill.work(event)) == 1

    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (line["message"], line["MessagesPutBack"], "exception" in line) == ("unavailable", 1, False)


def test_a_follow_up_job_has_a_line_and_is_counted(mill: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    follow_up = Submission(type="test.noop", payload={})
    mill.script.handler = lambda _payload, _run: Done(then=[follow_up])
    parent = mill.accepted()
    mill.publish()
    capsys.readouterr()

    mill.work(mill.receive())

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["message"] for line in lines] == ["claimed", "succeeded", "accepted"]
    assert lines[2]["job_id"] != parent
    assert lines[2]["JobsAdded"] == 1
