"""`python -m tests.benchmarks.start_latency` prints how long a job waits for its start, hop by hop.

It is a model: no AWS is called. It adds the medians of the hops, which is not the median of their sum. The metric
`StartLatency` counts from the time at which the job may start, which the function reads before its write, to the claim.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidemill.cost.measured import CALL_MS

#: The goal of the metric with a first message, at the median.
GOAL_MS: Final = 25

_MEASURED: Final = "https://bitesizedserverless.com/bite/serverless-messaging-latency-compared/"
_SINGLE_DIGIT: Final = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Introduction.html"


@dataclass(frozen=True, slots=True)
class Hop:
    """`low_ms` and `high_ms`: the 10th and the 90th percentile of a measurement, or the range of an assumption."""

    name: str
    median_ms: float
    low_ms: float
    high_ms: float
    #: A page, or why the figure is an assumption.
    source: str


#: A caller waits for these, and the start latency does not count them.
REQUEST: Final = (
    Hop("API Gateway, HTTP API", 10, 5, 30, "assumption: AWS documents no figure"),
    Hop("invoke of a warm submit", 5, 2, 15, "assumption: AWS documents no figure"),
)
_WRITE: Final = Hop(
    "the write of the document", CALL_MS, 1, 9, f'assumption within the "single-digit milliseconds" of {_SINGLE_DIGIT}'
)
#: Measured by others in 2022 in eu-west-1: from before the write to the start of the invoked function.
_STREAM: Final = Hop("the stream, four polls a second, and the invoke of publish", 213, 118, 341, _MEASURED)
_PUBLISH: Final = Hop("publish, to its request", 2, 1, 5, "assumption, of 0.2 ms of CPU and one batch")
#: From before the request to the start of the invoked function.
_QUEUE: Final = Hop("the message: send, long poll of the mapping, invoke of a warm worker", 16.2, 13.7, 33.8, _MEASURED)
_WORKER: Final = Hop("the worker, to its claim", 1, 0.5, 3, "assumption, of a part of 2.65 ms of CPU")
#: After the claim, which ends the start latency.
_CLAIM: Final = Hop("the claim, before the handler starts", CALL_MS, 1, 9, "as the write of the document")

#: The stream's figure begins before the write, so that it has that hop.
BY_STREAM: Final = (_STREAM, _PUBLISH, _QUEUE, _WORKER)
AT_ONCE: Final = (_WRITE, _QUEUE, _WORKER)


def total_ms(hops: Sequence[Hop]) -> float:
    return sum(hop.median_ms for hop in hops)


def markdown() -> str:
    """The tables of docs/performance.md."""
    rows = ["| hop | median, ms | range, ms | source |", "| --- | --- | --- | --- |"]
    for title, hops in (
        ("before the start latency begins", REQUEST),
        ("**by the stream**", BY_STREAM),
        ("**with a first message at once**", AT_ONCE),
        ("after the start latency has ended", (_CLAIM,)),
    ):
        low, high = sum(hop.low_ms for hop in hops), sum(hop.high_ms for hop in hops)
        rows.append(f"| {title} | {total_ms(hops):.1f} | {low:g} to {high:g} | |")
        rows += [
            f"| {hop.name} | {hop.median_ms:g} | {hop.low_ms:g} to {hop.high_ms:g} | {hop.source} |" for hop in hops
        ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
