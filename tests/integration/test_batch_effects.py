"""The effects of jobs that share a call: they commit together, and each with its own job."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.batch_calls import BATCH, a_batch, each, jobs_of
from tests.support.deployed_functions import TENANT, Mill, ProcessEndedError
from tests.support.faulty_client import Fault
from tests.support.jobs.batched import BatchScript
from tests.support.jobs.scripted import Anything
from tests.support.patience import PATIENCE_SECONDS
from tidemill import (
    Add,
    Done,
    Run,
)
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.dynamodb.document import key

COUNTER = {"pk": {"S": "!counter"}}


def _counting(mill: Mill) -> Callable[[Anything, Run], Done]:
    """Each job writes a record of its own, and counts in one item."""
    table = mill.table.name

    def outcome(payload: Anything, run: Run) -> Done:
        record = {"Put": {"TableName": table, "Item": {"pk": {"S": f"!record-{run.job_id}"}}}}
        return Done(result=payload.n, writes=[record, Add(table, COUNTER, {"jobs": 1, "sum": payload.n})])

    return outcome


def _counted(mill: Mill) -> tuple[int, int]:
    item = mill.table.client.get_item(TableName=mill.table.name, Key=COUNTER).get("Item", {})
    return int(item.get("jobs", {"N": "0"})["N"]), int(item.get("sum", {"N": "0"})["N"])


def test_jobs_that_succeed_together_settle_in_one_transaction(mill: Mill, calls: BatchScript) -> None:
    calls.handler = each(_counting(mill))
    job_ids, event = a_batch(mill)
    mill.read_configuration()

    mill.work(event)

    assert _counted(mill) == (BATCH, sum(range(BATCH)))
    assert [job.result for job in jobs_of(mill, job_ids)] == [str(number) for number in range(BATCH)]
    assert mill.calls["dynamodb.TransactWriteItems"] == 1
    # The claims.
    assert mill.calls["dynamodb.UpdateItem"] == BATCH


def test_an_effect_of_one_job_that_is_refused_costs_no_other_job_its_own(mill: Mill, calls: BatchScript) -> None:
    counting = _counting(mill)

    def outcome(payload: Anything, run: Run) -> Done:
        done = counting(payload, run)
        if payload.n != 3:
            return done
        refused = {"TableName": mill.table.name, "Key": {"pk": {"S": "!no-such-item"}}}
        check = {"ConditionCheck": refused | {"ConditionExpression": "attribute_exists(pk)"}}
        return Done(result=done.result, writes=[*done.writes, check])

    calls.handler = each(outcome)
    job_ids, event = a_batch(mill)

    mill.work(event)

    jobs = jobs_of(mill, job_ids)
    refused = jobs.pop(3)
    assert {job.state for job in jobs} == {State.SUCCEEDED}
    assert (refused.state, refused.errors[0].error_class) == (State.RETRYING, "EffectRefusedError")
    assert _counted(mill) == (BATCH - 1, sum(range(BATCH)) - 3)


def test_a_job_that_was_taken_over_takes_no_effect_with_the_others(mill: Mill, calls: BatchScript) -> None:
    counting = _counting(mill)
    job_ids, event = a_batch(mill)

    def handler(payloads: list[Anything], runs: list[Run]) -> list[Done]:
        mill.table.client.update_item(
            TableName=mill.table.name,
            Key=key(TENANT, job_ids[2]),
            UpdateExpression="SET #owner = :other",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={":other": {"S": "another-claim"}},
        )
        return each(counting)(payloads, runs)

    calls.handler = handler

    mill.work(event)

    jobs = jobs_of(mill, job_ids)
    lost = jobs.pop(2)
    assert lost.state is State.RUNNING
    assert {job.state for job in jobs} == {State.SUCCEEDED}
    assert _counted(mill) == (BATCH - 1, sum(range(BATCH)) - 2)


def test_a_settle_whose_answer_is_lost_takes_effect_once(mill: Mill, calls: BatchScript) -> None:
    job_ids, event = a_batch(mill)

    def handler(payloads: list[Anything], runs: list[Run]) -> list[Any]:
        mill.client.faults = [Fault.ANSWER_LOST]
        return each(_counting(mill))(payloads, runs)

    calls.handler = handler

    mill.work(event)

    assert {job.state for job in jobs_of(mill, job_ids)} == {State.SUCCEEDED}
    assert _counted(mill) == (BATCH, sum(range(BATCH)))


def test_a_call_that_takes_too_long_costs_no_job_an_attempt_and_ends_the_process(
    mill: Mill, unhurried: None, calls: BatchScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    ended = threading.Event()

    def handler(payloads: list[Anything], runs: list[Run]) -> list[Done]:
        mill.late = timedelta(seconds=0.2)
        gate.wait(PATIENCE_SECONDS)
        try:
            return each(_counting(mill))(payloads, runs)
        finally:
            ended.set()

    calls.handler = handler
    mill.stop_clock()
    job_ids, event = a_batch(mill, 3, job_type="test.batched_quick")

    with pytest.raises(ProcessEndedError):
        mill.work(event)

    jobs = jobs_of(mill, job_ids)
    assert {(job.state, job.attempt, job.holds.cause) for job in jobs} == {(State.QUEUED, 0, HoldCause.CALL)}
    before = [mill.table.item(job) for job in jobs]
    gate.set()
    assert ended.wait(PATIENCE_SECONDS)
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPoolExecutor"):
            thread.join(PATIENCE_SECONDS)
    assert [mill.table.item(job) for job in jobs] == before
    assert _counted(mill) == (0, 0)
