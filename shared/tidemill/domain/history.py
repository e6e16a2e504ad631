"""The flight recorder of a job: its last transitions, each written by the update that made it.

The document keeps them with the job, so it shows them when logs and metrics are gone. Decision 1 says why it is so.
"""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from tidemill.domain.records import replace

#: A job keeps at most the first number of its last transitions, and at least the second at any size. One that has
#: failed keeps at least the third: it needs its history most, and pays for a second write unit if need be.
MOST_KEPT: Final = 32
LEAST_KEPT: Final = 4
LEAST_KEPT_AFTER_FAILURE: Final = 12
#: A claim adds its entry without a read, up to this number of entries. Between two settles they come from claims whose
#: runs were lost (at most 25 attempts), from nudges, and, in an outage that swallows answers, from claims taken back.
MOST_UNREAD: Final = 100
#: The cause of a transition by a hold begins with this. The cause of the hold follows.
HELD: Final = "held: "
#: In characters. Longer ones are cut.
LONGEST_CAUSE: Final = 40
LONGEST_WORKER: Final = 60


class Why(StrEnum):
    """The cause of a transition, where neither an error class, a reason of death nor the cause of a hold says it."""

    ACCEPTED = "accepted"
    CLAIMED = "claimed"
    SUCCEEDED = "succeeded"
    EXPIRED = "expired"
    SNOOZED = "snoozed"
    CONTINUED = "continued"
    #: Its settle met other transactions too often.
    CONFLICT = "conflict"
    #: The worker got no answer to its claim, and gave back what may have been applied.
    UNANSWERED = "claim unanswered"
    #: Wake put it on its lane.
    DUE = "due"
    #: It became the head of its group.
    TURN = "its turn in the group"
    #: What it was parked for has room again.
    ROOM = "released from its line"
    #: Publish parked it instead of sending its message. It names no operator, since the tenant reads it.
    PAUSED = "paused by an operator"
    RESUMED = "released from its pause"
    #: To probe its downstream, or since its breaker has closed.
    BREAKER = "released by its breaker"
    #: No signal came until the end of its wait.
    WAITED = "no signal until its timeout"
    #: A cause of a flow: the acts of its nodes concern it.
    LOOK = "asked to look at its nodes"
    #: Its message was lost or late, so it was dispatched again.
    NUDGED = "nudged"
    #: A nudge of a run whose lease was over.
    RUN_LOST = "run lost"
    #: The jobs table was restored from a backup of a moment at which it ran.
    RESTORED = "table restored"
    REDRIVEN = "redriven"
    EDITED = "redriven with another payload"
    #: Cancelled before, between or after its runs.
    CANCELLED = "cancelled"
    #: A running job was asked to end.
    CANCEL_REQUESTED = "cancel requested"
    #: A later submission with its debounce key moved its time, or replaced its payload.
    MOVED = "moved"
    REPLACED = "payload replaced"
    #: The job that undoes it was submitted.
    UNDONE = "undone"


class Transition(Struct, frozen=True, kw_only=True):
    """One change of a job. Its texts may come from a newer version, so they are not checked."""

    at: datetime
    #: The state after it.
    state: str
    #: A `Why`, an error class, a reason of death, or `HELD` and the cause of the hold.
    cause: str
    #: The number of the run that it began or ended. Only the end of a run and the death of an undeliverable job store
    #: it, because only their writers know the document as it is; a reader gets the others from `with_attempts`.
    attempt: int | None = None
    #: The request id of the invocation that claimed the job, a slash, and the version of its code. Empty otherwise.
    worker: str = ""

    @property
    def version(self) -> str:
        """The version of the code that claimed the job. Empty if unknown, and for other transitions."""
        return version_of(self.worker)

    def __post_init__(self) -> None:
        force_setattr(self, "cause", self.cause[:LONGEST_CAUSE])
        force_setattr(self, "worker", self.worker[:LONGEST_WORKER])


def version_of(worker: str) -> str:
    """Return the version of the worker's code, as the history shows it. Empty if unknown."""
    return worker[:LONGEST_WORKER].partition("/")[2]


def with_attempts(history: Sequence[Transition], *, attempt: int) -> tuple[Transition, ...]:
    """The history with the number of each claim. `attempt` is that of the job.

    A claim has the number that the next entry gives it. Before another claim, its run was lost, and counts.
    """
    numbered: list[Transition] = []
    number = attempt
    for entry in reversed(history):
        if entry.cause == Why.CLAIMED:
            numbered.append(replace(entry, attempt=number))
            number -= 1
        elif entry.cause == Why.UNANSWERED:
            # The claim before it was given back, so the next one has its number again.
            number += 1
            numbered.append(replace(entry, attempt=number))
        elif entry.cause == Why.RUN_LOST:
            numbered.append(replace(entry, attempt=number))
        else:
            number = number if entry.attempt is None else entry.attempt
            numbered.append(entry)
    return tuple(reversed(numbered))


def insert(entry: Transition, entries: list[Transition]) -> None:
    """At its time."""
    entries.insert(next((index for index, each in enumerate(entries) if each.at > entry.at), len(entries)), entry)
