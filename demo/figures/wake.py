"""`python -m demo.figures wake` computes how fast `wake` queues 100,000 jobs that are due in one minute.

The real use case runs with the real AWS client, whose requests are answered in this process. It counts the calls and
the CPU time of a job. The rate is the least of what the pace, the calls, the processor and the index allow.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from rich.console import Console
from rich.table import Table

from stacks.stages import STAGES
from tidemill.application.waiting.wake import AT_ONCE, MOST_PER_SECOND, WAKE_RESERVE, Waker
from tidemill.aws import clients
from tidemill.aws.attribute_values import milliseconds, text
from tidemill.cdk.config import StageConfig
from tidemill.domain.job import Job
from tidemill.domain.job_parts import StoredPayload
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode, key
from tidemill.dynamodb.indexes import attention_partition
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.names import ATTENTION_KEY, ATTENTION_SORT_KEY, JOB_KEY, WAKE_INTERVAL_SECONDS, Lane

JOBS: Final = 100_000
#: Jobs that the measured call wakes.
SAMPLE: Final = 4_000
#: Assumed time of one call to DynamoDB.
LATENCY_SECONDS: Final = 0.010
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
PARTITION_WRITES_PER_SECOND: Final = 1_000
STAGE: Final = "prod"
_TABLE: Final = "jobs"
_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_INVOCATION: Final = timedelta(seconds=WAKE_INTERVAL_SECONDS)

LIMITS: Final = """\
The calls are counted and the CPU time is of this machine; the rest is computed for {latency:.0f} ms a call to
DynamoDB. Each call of wake has one vCPU of Lambda, which may be slower than this processor."""


class ScheduledJobs:
    """DynamoDB with jobs that are due, in one partition of the index. Answers the requests of a boto3 client."""

    def __init__(self, jobs: int) -> None:
        self.calls: Counter[str] = Counter()
        #: CPU time of the answers themselves, which the figure leaves out.
        self.cpu_seconds = 0.0
        self._lock = threading.Lock()
        job = Job(
            tenant="tenant",
            id="",
            type="mail.send",
            lane=Lane.DEFAULT,
            payload=StoredPayload(text=json.dumps({"address": "ada@example.com", "template": "welcome"})),
            body_hash="0" * 64,
            trace="0" * 32,
            state=State.SCHEDULED,
            generation=1,
            attempt=0,
            created_at=_NOW,
            due=_NOW,
        )
        self._documents = {
            item[JOB_KEY]["S"]: item for number in range(jobs) for item in [encode(replace(job, id=f"job-{number}"))]
        }
        entry = {
            ATTENTION_KEY: text(attention_partition(State.SCHEDULED, 0)),
            ATTENTION_SORT_KEY: milliseconds(_NOW),
        }
        self._entries = [key("tenant", f"job-{number}") | entry for number in range(jobs)]

    def answer(self, request: Any, **_event: Any) -> AWSResponse:
        began = time.thread_time()
        operation = request.headers["X-Amz-Target"].decode().rpartition(".")[2]
        body = getattr(self, f"_{operation}")(json.loads(request.body))
        answer = AWSResponse(request.url, 200, HTTPHeaders(), _Body(json.dumps(body).encode()))
        with self._lock:
            self.calls[operation] += 1
            self.cpu_seconds += time.thread_time() - began
        return answer

    def _Query(self, request: Mapping[str, Any]) -> Any:  # noqa: N802 - the name of the operation
        first = attention_partition(State.SCHEDULED, 0)
        if request["ExpressionAttributeValues"][":partition"]["S"] != first:
            return {"Items": []}
        start = int(request.get("ExclusiveStartKey", {}).get("position", {}).get("N", "0"))
        end = start + request["Limit"]
        more = {"LastEvaluatedKey": {"position": {"N": str(end)}}} if end < len(self._entries) else {}
        return {"Items": self._entries[start:end], **more}

    def _BatchGetItem(self, request: Mapping[str, Any]) -> Any:  # noqa: N802
        keys = [each[JOB_KEY]["S"] for each in request["RequestItems"][_TABLE]["Keys"]]
        return {"Responses": {_TABLE: [self._documents[each] for each in keys]}, "UnprocessedKeys": {}}

    def _UpdateItem(self, request: Mapping[str, Any]) -> Any:  # noqa: N802
        return {"Attributes": self._documents[request["Key"][JOB_KEY]["S"]] | {"state": text(State.QUEUED)}}


@dataclass(frozen=True, slots=True)
class _Body:
    """The part of a response of urllib3 that botocore reads."""

    content: bytes

    def stream(self) -> Iterator[bytes]:
        yield self.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one call of wake needed."""

    jobs: int
    calls: Mapping[str, int]
    cpu_seconds: float

    @property
    def cpu_per_job(self) -> float:
        return self.cpu_seconds / self.jobs

    @property
    def waiting_per_job(self) -> float:
        """Seconds of waiting for DynamoDB: reads come one after another, writes side by side."""
        reads = self.calls["Query"] + self.calls["BatchGetItem"]
        return (reads + self.calls["UpdateItem"] / AT_ONCE) * LATENCY_SECONDS / self.jobs

    def rates(self, stage: StageConfig) -> Mapping[str, float]:
        """Jobs a second of a stage, as far as each bound allows."""
        return {
            "the pace of wake": stage.wake_parts * MOST_PER_SECOND,
            "its processors and calls, one after the other": stage.wake_parts
            / (self.cpu_per_job + self.waiting_per_job),
            "the partitions of the index": stage.index_shards * PARTITION_WRITES_PER_SECOND,
        }


def measure(jobs: int = SAMPLE) -> Measured:
    """One call of wake over so many jobs. Its pauses only advance its clock."""
    table = ScheduledJobs(jobs)
    now = [_NOW]

    def pause(seconds: float) -> None:
        now[0] += timedelta(seconds=seconds)

    with answered_by(table) as client:
        store = DynamoJobStore(client, table=_TABLE, retention=timedelta(0))
        waker = Waker(store=store, clock=lambda: now[0], pause=pause)
        began = time.process_time()
        woken = waker.wake(time_left=_INVOCATION)
        cpu_seconds = time.process_time() - began - table.cpu_seconds
    return Measured(jobs=sum(woken.jobs.values()), calls=table.calls, cpu_seconds=cpu_seconds)


@contextmanager
def answered_by(table: ScheduledJobs) -> Iterator[Any]:
    """A client with the settings of the engine, no network and invented credentials."""
    client = boto3.client(
        "dynamodb",
        config=clients.CONFIG,
        region_name="eu-west-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",  # noqa: S106 - no secret
        endpoint_url="https://dynamodb.invalid",
    )
    client.meta.events.register("before-send.dynamodb", table.answer)  # type: ignore[arg-type]  # the event takes an answer
    try:
        yield client
    finally:
        client.close()


def main() -> None:
    stage = STAGES[STAGE]()
    measured = measure()
    rates = measured.rates(stage)
    seconds = JOBS / min(rates.values())
    console = Console()
    table = Table(
        "bound", "jobs a second", title=f"wake in {STAGE}: {stage.wake_parts} calls, {stage.index_shards} shards"
    )
    for bound, rate in rates.items():
        table.add_row(bound, f"{rate:,.0f}")
    console.print(table)
    counted = ", ".join(f"{count / measured.jobs:.3f} {name}" for name, count in sorted(measured.calls.items()))
    console.print(f"calls a job: {counted}; {measured.cpu_per_job * 1000:.2f} ms of CPU a job", highlight=False)
    of_invocation = (_INVOCATION - WAKE_RESERVE).total_seconds()
    console.print(f"{JOBS:,} jobs in {seconds:.0f} s, of {of_invocation:.0f} s in an invocation", highlight=False)
    console.print(LIMITS.format(latency=LATENCY_SECONDS * 1000), highlight=False, soft_wrap=True)
