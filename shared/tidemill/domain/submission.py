"""What a caller asks for when submitting a job, whether over HTTP, in Python or as the follow-up of another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tidemill.names import Lane


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """One job of its type in each `period`, counted from the epoch: by `key`, or without one by the payload."""

    period: timedelta
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One job asked for. `delay` or `run_at`, `key` or `unique`: not both."""

    type: str
    #: Decoded JSON.
    payload: Mapping[str, Any] = field(default_factory=dict)
    #: A lane less urgent than the type's; None for the type's own.
    lane: Lane | None = None
    #: Not before this time has passed.
    delay: timedelta | None = None
    #: Not before this moment, at most a year ahead.
    run_at: datetime | None = None
    #: Jobs of a tenant with the same group run one at a time, in the order accepted.
    group: str | None = None
    #: A run that has not begun by then never will: the job dies instead.
    deadline: datetime | None = None
    #: Idempotency key: submissions of a tenant with the same key make one job.
    key: str | None = None
    unique: Unique | None = None
