"""The verdict on a message whose claim was refused, from the document that refused it. How long messages wait."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.job import Job

#: A message whose generation is ahead of its document waits this long for the document.
AHEAD_DELAY: Final = timedelta(minutes=1)
#: When the store does not respond, the message is put back for a random time below a ceiling. The ceiling grows by a
#: quarter with each receive, so that the message comes back within half of the time that the outage has lasted: it may
#: be over. Because of the last ceiling, an outage of hours does not use up the receives that the lane allows.
FIRST_PUT_BACK_SECONDS: Final = 2.0
PUT_BACK_GROWTH: Final = 1.25
LONGEST_PUT_BACK_SECONDS: Final = 900.0


class ClaimVerdict(StrEnum):
    """Why a claim was refused."""

    #: The document expired or was never written. Acknowledge and count.
    GONE = "gone"
    #: The document is terminal: an earlier delivery did the work. Acknowledge.
    DUPLICATE = "duplicate"
    #: The document has a newer generation, which has a message of its own. Acknowledge.
    STALE = "stale"
    #: The document has an older generation, as in a table restored from a backup. Put back.
    AHEAD = "ahead"
    #: Another worker holds the lease. Put back until it ends.
    LEASED = "leased"
    #: Delivered before its time. Put back until then.
    EARLY = "early"

    @property
    def acknowledged(self) -> bool:
        return self in {ClaimVerdict.GONE, ClaimVerdict.DUPLICATE, ClaimVerdict.STALE}


def judge(reference: Reference, current: Job | None) -> ClaimVerdict:
    """`current` is the document that refused the claim."""
    if current is None:
        return ClaimVerdict.GONE
    if current.state.terminal:
        return ClaimVerdict.DUPLICATE
    if current.generation > reference.generation:
        return ClaimVerdict.STALE
    if current.generation < reference.generation:
        return ClaimVerdict.AHEAD
    return ClaimVerdict.EARLY if current.lease.owner is None else ClaimVerdict.LEASED


def put_back_time(verdict: ClaimVerdict, current: Job | None, now: datetime) -> datetime:
    """When a claim from the message can succeed at the earliest."""
    return current.due if current and current.due and verdict is not ClaimVerdict.AHEAD else now + AHEAD_DELAY


def put_back_for(receives: int, *, draw: float) -> timedelta:
    """How long the store is left alone by a message that was received so often. `draw` is from 0 to 1."""
    ceiling_seconds = FIRST_PUT_BACK_SECONDS * PUT_BACK_GROWTH ** min(receives - 1, 60)
    return timedelta(seconds=1 + min(ceiling_seconds, LONGEST_PUT_BACK_SECONDS) * draw)
