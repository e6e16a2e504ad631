"""A change of a job document, as the stream tells it."""

from dataclasses import dataclass

from tidemill.domain.job import Job


@dataclass(frozen=True, slots=True)
class Change:
    """One stream record: the document before and after. `sequence` is its sequence number in the stream."""

    sequence: str
    before: Job | None
    after: Job | None
