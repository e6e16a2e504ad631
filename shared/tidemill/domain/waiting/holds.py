"""Why a claimed job was held back instead of run. Each cause is counted by itself: one must not use up another."""

from enum import StrEnum
from typing import Final

from msgspec import Struct


class HoldCause(StrEnum):
    """The cause of a hold."""

    #: The limits of its limit key leave no room.
    LIMIT = "limit"
    #: An operator has paused it.
    PAUSE = "pause"
    #: It may have killed the worker of its last run, and its worker had no time to run it alone.
    SUSPECT = "suspect"
    #: A handler in its process runs beyond its time, or has spoiled the process, which is about to end.
    STRAY = "stray"
    #: The store did not respond.
    OUTAGE = "outage"
    #: Its worker could not load its type, because a job file is broken.
    TYPE = "type"
    #: The breaker of its downstream was open, or opened because of its run.
    BREAKER = "breaker"
    #: Its worker does not know its type, or refuses its payload.
    VERSION = "version"
    #: It supersedes a job that still ran, or whose undo had not succeeded.
    UNDO = "undo"
    #: A call of its batch handler failed for several jobs, and nothing says which of them it is about.
    CALL = "call"


#: A job may be held so often by one of these. Their counts go on when another cause holds the job in between: else two
#: causes that take turns would hold it for ever. After one hold for a call, the job runs alone.
BOUNDED: Final = frozenset({HoldCause.SUSPECT, HoldCause.OUTAGE, HoldCause.VERSION, HoldCause.CALL})


class Holds(Struct, frozen=True, kw_only=True):
    """How often each cause has held a job back. Cleared by any other outcome, by release and by redrive."""

    #: How often the last cause did. These holds are consecutive, unless that is one of `BOUNDED`.
    count: int = 0
    #: The last cause. None without holds, and for the holds of another version.
    cause: HoldCause | None = None
    #: How often each other bounded cause held the job back since then. Each cause appears at most once.
    others: tuple[tuple[HoldCause, int], ...] = ()

    @property
    def by_cause(self) -> dict[HoldCause, int]:
        """The count of each cause."""
        last = {} if self.cause is None else {self.cause: self.count}
        return dict(self.others) | last


def known_cause(name: str) -> HoldCause | None:
    """None for a cause that only another version knows: it must not make the document unreadable."""
    return HoldCause(name) if name in set(HoldCause) else None
