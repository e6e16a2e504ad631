"""The states of a job and the one table of legal transitions, which drives guards, conditions and the drawing."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a job stands. An unknown value raises: a document from a newer version is not guessed at."""

    #: Accepted or redriven. Work moves it out. Kept until claimed.
    QUEUED = "queued"
    #: Claimed by a worker. Settle moves it out, or a later claim or nudge when the lease is over. Kept for the lease.
    RUNNING = "running"
    #: An attempt failed or was lost and another is allowed. Work moves it out. Kept until claimed.
    RETRYING = "retrying"
    #: Settled. Nobody moves it out. Kept for the retention time.
    SUCCEEDED = "succeeded"
    #: Failed for good. A person's redrive is required to move it out. Kept for the retention time.
    DEAD = "dead"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL


class Write(StrEnum):
    """The writes of the protocol, each named by its precondition in the store."""

    INSERT = "insert_if_absent"
    CLAIM = "claim"
    SETTLE = "settle"
    RELEASE = "release"
    NUDGE = "nudge"
    REDRIVE = "redrive"


TERMINAL: Final = frozenset({State.SUCCEEDED, State.DEAD})

#: Write → state before → states after. `None` before means: no such document, or an expired one.
TRANSITIONS: Final[Mapping[Write, Mapping[State | None, frozenset[State]]]] = {
    Write.INSERT: {None: frozenset({State.QUEUED})},
    Write.CLAIM: {
        State.QUEUED: frozenset({State.RUNNING}),
        State.RETRYING: frozenset({State.RUNNING}),
        State.RUNNING: frozenset({State.RUNNING}),  # the lease is over: its worker is taken for dead
    },
    Write.SETTLE: {State.RUNNING: frozenset({State.SUCCEEDED, State.RETRYING, State.DEAD})},
    Write.RELEASE: {State.RUNNING: frozenset({State.RETRYING})},
    Write.NUDGE: {
        State.QUEUED: frozenset({State.QUEUED}),
        State.RETRYING: frozenset({State.RETRYING}),
        State.RUNNING: frozenset({State.RETRYING}),
    },
    Write.REDRIVE: {State.DEAD: frozenset({State.QUEUED})},
}


def allowed(write: Write, before: State | None, after: State) -> bool:
    return after in TRANSITIONS[write].get(before, frozenset())
