"""One batch of a worker, as its invocation answered it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkedBatch:
    """Times in milliseconds. Lambda would have ended the invocation at `ends_ms`."""

    lane: str
    by: str
    began_ms: int
    ended_ms: int
    ends_ms: int
