"""Dollars per million jobs, line by line, from the counts and the list prices.

Lambda bills wall time, so its line comes from the batch at five milliseconds a call. All other lines are counts.
"""

from collections.abc import Mapping
from typing import Final

from tests.benchmarks import list_prices as prices

#: A batch of a lane, and of the stream.
BATCH: Final = 10
MEMORY_GIGABYTES: Final = 0.5
JOBS: Final = 1e6
#: Receive and delete, which Lambda makes for each batch.
_CALLS_OF_MAPPING: Final = 2


def per_million(
    build: str, counts: Mapping[str, float], wall: Mapping[str, float], log_bytes: float
) -> dict[str, float]:
    """`wall` in milliseconds, `log_bytes` of one job."""
    ours = build == "tidemill"
    sends = 1 / BATCH if ours else 1
    requests = sends + _CALLS_OF_MAPPING / BATCH
    queue = prices.SQS_FAIR_REQUESTS if ours else prices.SQS_REQUESTS
    batches = ("batch, 5 ms a call, 0 ms of work", *(["publication, 5 ms a call"] if ours else []))
    milliseconds = wall["submission, 5 ms a call"] + sum(wall[name] for name in batches) / BATCH
    lines = {
        "API requests": prices.HTTP_API_REQUESTS.of(JOBS),
        "table writes": prices.DYNAMODB_WRITES.of(JOBS * counts["write units"]),
        "queue requests": queue.of(JOBS * requests),
        "invocations": prices.LAMBDA_REQUESTS.of(JOBS * (1 + len(batches) / BATCH)),
        "invocation time": prices.LAMBDA_DURATION.of(JOBS * milliseconds / 1000 * MEMORY_GIGABYTES),
        "logs": prices.LOG_INGESTION.of(JOBS * log_bytes),
    }
    return lines | {"total": sum(lines.values())}
