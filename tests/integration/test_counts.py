"""The cost of a job in counted AWS calls."""

import sys

import pytest

from tests.support.deployed_functions import Mill
from tidemill.domain.states import State

JOBS = 10
WRITES = ("dynamodb.PutItem", "dynamodb.UpdateItem", "dynamodb.TransactWriteItems", "dynamodb.DeleteItem")


def test_a_job_without_work_costs_three_writes_and_no_read(mill: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    mill.read_configuration()
    job_ids = [mill.accepted(job_type="test.noop") for _ in range(JOBS)]
    before = mill.calls.copy()
    assert before == {"dynamodb.PutItem": JOBS}
    mill.publish(records := mill.records())
    sent = mill.calls["sqs.SendMessageBatch"]
    event = mill.receive()
    received = mill.calls.copy()
    assert len(records) == len(event["Records"]) == JOBS

    assert mill.work(event) == []

    work = mill.calls - received
    ours = {"dynamodb.PutItem": JOBS, "sqs.SendMessageBatch": sent, "dynamodb.UpdateItem": work["dynamodb.UpdateItem"]}
    with capsys.disabled():
        sys.stdout.write(f"\n{JOBS} jobs: {ours}, {sum(ours.values()) / JOBS} calls a job\n")
    assert sum(ours[write] for write in WRITES if write in ours) == 3 * JOBS
    assert sum(ours.values()) == 3.1 * JOBS
    # The event source mapping makes the other call: it deletes the acknowledged messages.
    assert set(work) == {"dynamodb.UpdateItem", "sqs.DeleteMessageBatch"}
    assert {mill.job(job_id).state for job_id in job_ids} == {State.SUCCEEDED}


def test_the_job_item_stays_within_one_write_unit(mill: Mill) -> None:
    job_id = mill.accepted(job_type="test.noop")
    mill.run()

    item = mill.table.item(mill.job(job_id))

    assert item is not None
    size_bytes = sum(len(name) + sum(len(str(held)) for held in value.values()) for name, value in item.items())
    assert size_bytes < 1024


def test_a_replay_costs_one_refused_write_and_no_read(mill: Mill) -> None:
    mill.stop_clock()
    mill.post(key="a-key")
    mill.calls.clear()

    assert mill.post(key="a-key").status == 200

    assert mill.calls == {"dynamodb.PutItem": 1}
