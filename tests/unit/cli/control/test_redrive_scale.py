"""A redrive of many dead jobs: its calls and its memory. The table is generated, so that it takes no memory itself.

`python -m tests.unit.cli.control.test_redrive_scale 100000` prints the figures of so many jobs.
"""

import sys
import time
import tracemalloc
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from resource import RUSAGE_SELF, getrusage
from typing import Any

import pytest

from tests.support.builders import NOW, TENANT, a_job
from tidemill.application.control.redrive import Redriver
from tidemill.application.control.redrive_probes import Probes
from tidemill.application.groups.group_order import in_group_order
from tidemill.application.job_filter import ANY_JOB
from tidemill.cli.control.parallel_writes import ParallelWrites
from tidemill.domain.job import AttemptError, DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode, key, split_key
from tidemill.dynamodb.indexes import attention_partition
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.names import LARGEST_INDEX_SHARDS

TABLE = "jobs"
PAGE = 100
_ERROR = AttemptError(attempt=1, at=NOW, error_class="ValueError", message="row 7 is gone", retryable=False)


def _job(job_id: str) -> Job:
    number = int(job_id)
    return a_job(
        id=job_id,
        tenant=TENANT,
        state=State.DEAD,
        death=DeathReason.EXHAUSTED,
        due=None,
        finished_at=NOW + timedelta(milliseconds=number),
        errors=(_ERROR,),
    )


@dataclass
class ManyDeadJobs:
    """A client of a table that holds `number` dead jobs, spread over the partitions of the index. Notes each call."""

    number: int
    #: The id of the probe, which succeeds at once.
    probe: str = ""

    def __post_init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def query(
        self,
        *,
        ExpressionAttributeValues: Any,  # noqa: N803
        ExclusiveStartKey: Any = None,  # noqa: N803
        **_: Any,
    ) -> dict[str, Any]:
        partitions = [attention_partition(State.DEAD, shard) for shard in range(LARGEST_INDEX_SHARDS)]
        ids = range(partitions.index(ExpressionAttributeValues[":partition"]["S"]), self.number, LARGEST_INDEX_SHARDS)
        left = ids[ids.index(int(split_key(ExclusiveStartKey)[1])) + 1 :] if ExclusiveStartKey else ids
        self.calls["Query"] += 1
        items = [key(TENANT, str(number)) for number in left[:PAGE]]
        return {"Items": items} | ({"LastEvaluatedKey": items[-1]} if len(left) > PAGE else {})

    def batch_get_item(self, *, RequestItems: Any) -> dict[str, Any]:  # noqa: N803
        self.calls["BatchGetItem"] += 1
        ids = [split_key(one)[1] for one in RequestItems[TABLE]["Keys"]]
        jobs = [replace(_job(one), state=State.SUCCEEDED) if one == self.probe else _job(one) for one in ids]
        return {"Responses": {TABLE: [encode(job) for job in jobs]}, "UnprocessedKeys": {}}

    def update_item(self, *, Key: Any, **_: Any) -> dict[str, Any]:  # noqa: N803
        self.calls["UpdateItem"] += 1
        job_id = split_key(Key)[1]
        self.probe = self.probe or job_id
        return {"Attributes": encode(replace(_job(job_id), state=State.QUEUED))}


def _redrive(client: Any) -> int:
    """Redrive as `tidemill redrive --all` does after its plan. Returns the number of jobs."""
    store = DynamoJobStore(client, table=TABLE, retention=timedelta(days=30))
    redriver = Redriver(store=store, clock=lambda: NOW, new_token=lambda: "token")
    probes = Probes(store=store, clock=lambda: NOW, pause=time.sleep, timeout=timedelta(minutes=1))
    writes = ParallelWrites(partial(redriver.redrive, by="ada"), verb="Redrove")
    chosen = probes.choose(in_group_order(redriver.dead_jobs(ANY_JOB)))
    writes.run(chosen)
    for job in chosen:
        probes.redriven(job)
    probes.wait(lambda _probe: None)
    writes.run(probes.approved(in_group_order(redriver.dead_jobs(ANY_JOB))))
    return writes.written


def _peak_bytes(number: int) -> int:
    tracemalloc.start()
    try:
        # One write at a time: the trace of allocations makes threads slow.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tidemill.cli.control.parallel_writes._THREADS", 1)
            assert _redrive(ManyDeadJobs(number)) == number
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_each_job_takes_one_write_and_its_share_of_two_reads() -> None:
    client = ManyDeadJobs(1_600)

    assert _redrive(client) == 1_600

    assert client.calls["UpdateItem"] == 1_600
    # Twice: for the probes, and for the jobs that they approve. And once to look at the probe.
    assert client.calls["BatchGetItem"] <= 2 * (1_600 / PAGE + LARGEST_INDEX_SHARDS) + 1
    assert client.calls["Query"] <= 2 * (1_600 / PAGE + LARGEST_INDEX_SHARDS)


@pytest.mark.parametrize("few", [1_500])
def test_the_memory_does_not_grow_with_the_number_of_jobs(few: int) -> None:
    """The peak varies by a third with the moments of garbage collection. A kilobyte for each job would double it."""
    _peak_bytes(100)  # what is imported and cached on the first use
    assert _peak_bytes(4 * few) < 1.6 * _peak_bytes(few)


if __name__ == "__main__":
    jobs = int(sys.argv[1])
    before, client = getrusage(RUSAGE_SELF), ManyDeadJobs(jobs)
    _redrive(client)
    after = getrusage(RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    calls = sum(client.calls.values())
    print(f"{jobs} jobs: {seconds:.0f} s of CPU, {calls / jobs:.3f} calls a job, {dict(client.calls)}")  # noqa: T201
    print(f"the process grew from {before.ru_maxrss // 1024} to {after.ru_maxrss // 1024} MiB")  # noqa: T201
