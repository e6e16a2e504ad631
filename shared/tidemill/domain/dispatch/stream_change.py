"""A change of a job document, as the stream tells it."""

from msgspec import Struct

from tidemill.domain.job import Job


class Change(Struct, frozen=True):
    """One stream record: the document before and after. `sequence` is its sequence number in the stream."""

    sequence: str
    before: Job | None
    after: Job | None
