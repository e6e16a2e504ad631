"""`python -m tests.simulation.publish_rounds` prints how long a critical job waits behind bulk jobs in the stream.

It writes bulk jobs and then a critical one to one shard of a stream, and lets the real publish send their messages to
an SQS that takes a virtual time for each call. The wait is counted in rounds: in durations of one call.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.simulation.deployment import Deployment
from tests.simulation.world.dynamodb_table import Schema, Table
from tests.simulation.world.lambda_environments import Function
from tests.simulation.world.stream_mapping import StreamMapping
from tests.simulation.world.world import World
from tests.support.builders import a_job
from tidemill.application.features.publisher_features import publisher
from tidemill.aws.clients import POOL_SIZE
from tidemill.cdk.config import LARGEST_PARALLELIZATION
from tidemill.dynamodb import document
from tidemill.dynamodb.dispatch import stream
from tidemill.names import JOB_KEY, Lane
from tidemill.sqs import lanes
from tidemill.sqs.lanes import LaneUrls, SqsLanes
from tidemill.system import clock

BULK_JOBS: Final = 1_000
#: Parallelization factor of the mapping, and calls to SQS at once. The last one is what a stage deploys.
CASES: Final = ((1, 1), (1, POOL_SIZE), (2, POOL_SIZE), (LARGEST_PARALLELIZATION, POOL_SIZE))
#: So long that the pauses of the poller, some milliseconds, do not count.
_CALL_MS: Final = 10_000
_TIMEOUT_SECONDS: Final = 900
_MOST_STEPS: Final = 1_000_000


def rounds(*, factor: int, calls_at_once: int, bulk_jobs: int = BULK_JOBS) -> int:
    """Rounds of calls until SQS has the critical job."""
    with World(0, Deployment()) as world, _calls_at_once(calls_at_once):
        world.faults.stopped = True
        table = Table("records", Schema(names=(JOB_KEY,), types=("S",)), shards=1)
        sent_at_ms: list[int] = []

        class Queues:
            def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803 - as boto3 has it
                world.scheduler.sleep(_CALL_MS)
                if QueueUrl == Lane.CRITICAL:
                    sent_at_ms.append(world.scheduler.now_ms)
                return {}

        urls = {lane: LaneUrls(queue=lane, dead_letters=f"{lane}-dead") for lane in Lane}
        published_by = publisher(
            store=None,  # type: ignore[arg-type]  # no job ends
            payloads=None,  # type: ignore[arg-type]
            lanes=SqsLanes(Queues(), urls),  # type: ignore[arg-type]  # the one call that it makes
            owed=None,  # type: ignore[arg-type]  # no message is refused
            clock=clock.now,
        )

        def handle(event: Any, _context: Any) -> Any:
            published = published_by.publish(stream.read(event, lanes=urls).changes)
            return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in published.failed]}

        StreamMapping(
            table,
            Function(
                "publish",
                handle,
                timeout_seconds=_TIMEOUT_SECONDS,
                environment={},
                scheduler=world.scheduler,
                faults=world.faults,
                trace=world.trace,
            ),
            patterns=world.deployment.stream_patterns,
            batch_size=world.deployment.stream_batch_size,
            retries=world.deployment.stream_retries,
            oldest_seconds=world.deployment.stream_oldest_seconds,
            failures=world.failures,
            scheduler=world.scheduler,
            faults=world.faults,
            trace=world.trace,
            factor=factor,
        )
        began_ms = world.scheduler.now_ms
        for lane in [Lane.BULK] * bulk_jobs + [Lane.CRITICAL]:
            now = datetime.fromtimestamp(began_ms / 1000, tz=UTC)
            item = document.encode(a_job(lane=lane, created_at=now, due=now))
            table.put((item[JOB_KEY]["S"],), item, now_ms=began_ms)
        until_ms = began_ms + timedelta(days=1) // timedelta(milliseconds=1)
        world.scheduler.run(until_ms=until_ms, most_steps=_MOST_STEPS, over=lambda: bool(sent_at_ms))
        return (sent_at_ms[0] - began_ms) // _CALL_MS


@contextmanager
def _calls_at_once(calls: int) -> Iterator[None]:
    before, lanes.POOL_SIZE = lanes.POOL_SIZE, calls  # type: ignore[attr-defined]
    try:
        yield
    finally:
        lanes.POOL_SIZE = before  # type: ignore[attr-defined]


def report() -> Iterator[str]:
    yield f"rounds of calls to SQS until a critical job behind {BULK_JOBS:,} bulk jobs of its shard is on its lane"
    for factor, calls_at_once in CASES:
        waited = rounds(factor=factor, calls_at_once=calls_at_once)
        yield f"{waited:5}  parallelization factor {factor}, {calls_at_once} calls at once"


if __name__ == "__main__":
    print("\n".join(report()))  # noqa: T201 - output of a command
