"""A submission: the request for one job, over HTTP, in Python or as the follow-up of another job."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal

from msgspec import Struct, field

from tidemill.names import LARGEST_BODY_BYTES, Lane


class Unique(Struct, frozen=True, kw_only=True):
    """At most one job of its type in each `period`, counted from 1970: per `key`, or without one per payload."""

    period: timedelta
    key: str | None = None


class Submission(Struct, frozen=True, kw_only=True):
    """The request for one job. Give `delay` or `run_at`, not both; and `key` or `unique`, not both."""

    type: str
    #: Decoded JSON.
    payload: Mapping[str, Any] = field(default_factory=dict)
    #: The type's lane or a less urgent one; None for the type's.
    lane: Lane | None = None
    #: The job does not start before this time has passed.
    delay: timedelta | None = None
    #: The job does not start before this time, at most 366 days ahead.
    run_at: datetime | None = None
    #: Jobs of a tenant with the same group run one at a time, in the order accepted.
    group: str | None = None
    #: No run starts after this time: the job dies instead.
    deadline: datetime | None = None
    #: No run starts when the job is older than this, counted from the time at which it may begin: the job expires
    #: instead, and does not count as failed. None for that of the type.
    max_age: timedelta | None = None
    #: Idempotency key: submissions of a tenant with the same key make one job.
    key: str | None = None
    #: The idempotency key or the id of an earlier job of the tenant that this one corrects. It runs once that one has
    #: been cancelled, or undone by what its handler recorded. Not with `unique`, `delay` or `run_at`.
    supersedes: str | None = None
    unique: Unique | None = None
    #: At most five labels to find the job by, each as `[a-z0-9][a-z0-9._:-]{0,31}`. A follow-up does not inherit them.
    tags: Sequence[str] = ()
    #: The id of an open batch of the tenant that the job joins. Not with `unique` or `supersedes`.
    batch: str | None = None
    #: The job starts once its tenant has submitted none of its type and `debounce_key` for so long: a submission moves
    #: the job of an earlier one that has not begun. Not with `key`, `unique`, `group`, `batch`, `supersedes`, `delay`,
    #: `run_at` or `deadline`.
    debounce: timedelta | None = None
    #: None for the payload.
    debounce_key: str | None = None
    #: The job starts this long after its first submission at the latest; None for ten times `debounce`.
    debounce_max: timedelta | None = None
    #: With `"payload"`, the payload of the last submission counts, and otherwise that of the first.
    replace: Literal["payload"] | None = None

    #: The most characters of JSON that a caller may send for it.
    largest: ClassVar[int] = LARGEST_BODY_BYTES
    #: The built-in type that only this form of a submission may have.
    carries: ClassVar[str | None] = None
    #: The engine builds the payload from parts that it has checked.
    built: ClassVar[bool] = False

    def identity(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the part of the payload, as decoded JSON, that a repeated submission has in common with the first."""
        return payload

    @property
    def callback(self) -> str | None:
        """The name of a follow-up job that has the same id at each end of its parent. None for any other one."""
        return None


class DerivedKey(Submission, frozen=True, kw_only=True):
    """A submission whose key the engine derived: the job has an id to which no key of a caller leads."""


class PinnedSubmission(Submission, frozen=True, kw_only=True):
    """A submission with the facts of its type, as they were when another job was accepted that leads to this one.

    Neither an unknown type nor a model that refuses the payload stops it. Its run decides whether the payload fits.
    """

    blocks: bool = False
    retention: timedelta | None = None
