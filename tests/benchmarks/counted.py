"""What a job costs in writes, write units, calls and bytes. Counted by the server, so it is exact in every run."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from tests.benchmarks.builds import WITH_GROUPED, Build, lambda_event
from tests.benchmarks.loopback_client import Loopback

#: A batch of a lane.
JOBS: Final = 10
#: Characters of padding in the payload. Each is a byte.
PAYLOAD_BYTES: Final = (0, 1_000, 4_000, 16_000, 64_000)


def measure(aws: Loopback) -> dict[str, Any]:
    """By build, then by payload size."""
    return {
        build.name: {str(size): _per_job(build, aws, {"padding": "x" * size}) for size in PAYLOAD_BYTES}
        for build in WITH_GROUPED
    }


def _per_job(build: Build, aws: Loopback, payload: Mapping[str, Any]) -> dict[str, float]:
    aws.take()
    for _ in range(JOBS):
        build.submit(payload)
    submitted = aws.take()
    build.publish(submitted)
    published = aws.take()
    build.work(lambda_event([*submitted["sent"], *published["sent"]]))
    counts = sum((Counter(taken["counts"]) for taken in (submitted, published, aws.take())), Counter[str]())
    return {
        "table writes": counts["table writes"] / JOBS,
        "write units": counts["write units"] / JOBS,
        "index write units": counts["index write units"] / JOBS,
        "reads": counts["reads"] / JOBS,
        "calls": sum(count for name, count in counts.items() if name.startswith("call ")) / JOBS,
        "bytes": counts["bytes"] / JOBS,
    }
