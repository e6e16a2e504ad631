"""Dollars per million jobs, line by line, from the counts and the list prices.

Lambda bills wall time, so its line comes from the batch at five milliseconds a call. All other lines are counts.
"""

from collections.abc import Mapping
from typing import Final

from tidemill.cost.bill import Usage, lines, total

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
    batches = ("batch, 5 ms a call, 0 ms of work", *(["publication, 5 ms a call"] if ours else []))
    milliseconds = wall["submission, 5 ms a call"] + sum(wall[name] for name in batches) / BATCH
    used = Usage(
        api_requests=1,
        write_units=counts["write units"],
        fair_requests=requests if ours else 0,
        queue_requests=0 if ours else requests,
        invocations=1 + len(batches) / BATCH,
        gigabyte_seconds=milliseconds / 1000 * MEMORY_GIGABYTES,
        log_bytes=log_bytes,
    )
    bill = lines(used.times(JOBS))
    return {line.name: line.dollars for line in bill} | {"total": total(bill)}
