"""Work that a handler skipped under strain, and the jobs that make up for it. Decision 50 gives the reasons."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

#: The kinds of work that one type may skip, so that the marks fit into the document.
MOST_SKIPPED: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """The mark of a success: the handler skipped this work."""

    name: str
    #: The job type that makes up for it.
    type: str
    #: Of that type, when the handler skipped the work: how long to keep its ended job; None for that of the stage.
    retention: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    """The job that makes up for the skipped work of this name."""

    name: str
    job_id: str
    at: datetime
