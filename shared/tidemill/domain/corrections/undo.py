"""Compensation: what would undo the effect of a job, and who has asked for that. Decision 23 gives the reasons."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from tidemill.names import Lane

#: The payload as JSON text in ASCII. It is part of the document of the job that it undoes.
LARGEST_UNDO_BYTES: Final = 32 * 1024


class Undo(Struct, frozen=True, kw_only=True):
    """The job that undoes the effect of another. Its submission is checked; it has no id or time yet."""

    type: str
    lane: Lane
    #: JSON text.
    payload: str
    tags: tuple[str, ...] = ()
    #: The values of its type when the other job succeeded. They mean what they mean in `Job`.
    blocks: bool = False
    retention: timedelta | None = None
    #: It expires if it has not begun so long after its submission.
    max_age: timedelta | None = None


class Undone(Struct, frozen=True, kw_only=True):
    """The audit entry of an undo: the job that it submitted, and who asked for it."""

    job_id: str
    at: datetime
    #: Who asked, as in `CancelRequest.by`.
    by: str
    #: Why, in the operator's words.
    reason: str = ""


class Correction(Struct, frozen=True, kw_only=True):
    """How a job corrects another one, or is corrected."""

    #: The job whose effect this one undoes.
    undoes: str | None = None
    #: The earlier job that this one corrects: it runs once that one has no effect. Until its insert, a key or an id.
    supersedes: str | None = None
    #: The id that the undo of that job has, if there is one.
    after_undo: str | None = None
    #: The later job that corrects this one.
    superseded_by: str | None = None
    #: What would undo its effect, as its handler said. Set on success.
    undo: Undo | None = None
    #: The undo that was submitted. Set once, after the success.
    undone: Undone | None = None
