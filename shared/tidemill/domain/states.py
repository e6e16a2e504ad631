"""The states of a job and the one table of legal transitions, which drives guards, conditions and the drawing."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a job stands. An unknown value raises: a document from a newer version is not guessed at."""

    #: Submitted behind another job of its group. Advance or cancel moves it out. Kept until head of its group.
    WAITING = "waiting"
    #: Submitted, snoozed or retried with more than 15 minutes to go. Wake or cancel moves it out. Kept until due.
    SCHEDULED = "scheduled"
    #: Accepted, woken, advanced, continued, snoozed, held or redriven. Work or cancel moves it out. Kept until claimed.
    QUEUED = "queued"
    #: Claimed by a worker. Settle moves it out, or a later claim or nudge when the lease is over. Kept for the lease.
    RUNNING = "running"
    #: An attempt failed or was lost and another is allowed. Work or cancel moves it out. Kept until claimed.
    RETRYING = "retrying"
    #: Settled. Nobody moves it out. Kept for the retention time.
    SUCCEEDED = "succeeded"
    #: Failed for good. A person's redrive or cancel is required to move it out. Kept for the retention time.
    DEAD = "dead"
    #: Cancelled before, between or during its attempts. Nobody moves it out. Kept for the retention time.
    CANCELLED = "cancelled"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL


class Write(StrEnum):
    """The writes of the protocol, each named by its precondition in the store."""

    INSERT = "insert_if_absent"
    CLAIM = "claim"
    SETTLE = "settle"
    RELEASE = "release"
    CHECKPOINT = "checkpoint"
    CANCEL = "cancel"
    WAKE = "wake"
    NUDGE = "nudge"
    REDRIVE = "redrive"
    ADVANCE = "advance"
    FORGET = "forget"


TERMINAL: Final = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED})

#: Write → state before → states after. `None` before means: no such document, or an expired one.
TRANSITIONS: Final[Mapping[Write, Mapping[State | None, frozenset[State]]]] = {
    Write.INSERT: {None: frozenset({State.WAITING, State.SCHEDULED, State.QUEUED})},
    Write.CLAIM: {
        State.QUEUED: frozenset({State.RUNNING}),
        State.RETRYING: frozenset({State.RUNNING}),
        State.RUNNING: frozenset({State.RUNNING}),  # the lease is over: its worker is taken for dead
        State.SCHEDULED: frozenset({State.RUNNING}),  # its time has come, and it is as good as woken
    },
    Write.SETTLE: {
        State.RUNNING: frozenset(
            {State.SUCCEEDED, State.RETRYING, State.DEAD, State.QUEUED, State.SCHEDULED, State.CANCELLED}
        )
    },
    Write.RELEASE: {State.RUNNING: frozenset({State.RETRYING})},
    Write.CHECKPOINT: {State.RUNNING: frozenset({State.RUNNING})},
    Write.CANCEL: {
        State.WAITING: frozenset({State.CANCELLED}),
        State.SCHEDULED: frozenset({State.CANCELLED}),
        State.QUEUED: frozenset({State.CANCELLED}),
        State.RETRYING: frozenset({State.CANCELLED}),
        State.RUNNING: frozenset({State.RUNNING}),  # asked: the run may end it, and it has no other
        State.DEAD: frozenset({State.CANCELLED}),  # discarded: nobody need look after it, and its group goes on
    },
    Write.WAKE: {State.SCHEDULED: frozenset({State.QUEUED})},
    Write.NUDGE: {
        State.QUEUED: frozenset({State.QUEUED, State.DEAD}),  # dead: nudged in vain too often
        State.RETRYING: frozenset({State.RETRYING, State.DEAD}),
        State.RUNNING: frozenset({State.RETRYING}),
        State.SCHEDULED: frozenset({State.QUEUED}),  # the clock has missed it
    },
    Write.REDRIVE: {State.DEAD: frozenset({State.QUEUED, State.WAITING})},
    # The document is gone, which no state says.
    Write.FORGET: {},
    Write.ADVANCE: {State.WAITING: frozenset({State.QUEUED, State.SCHEDULED})},
}


def allowed(write: Write, before: State | None, after: State) -> bool:
    return after in TRANSITIONS[write].get(before, frozenset())
