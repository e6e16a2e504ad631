"""The states of a job and the table of legal transitions, which drives guards, conditions and the diagram."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The state of a job. An unknown value raises `ValueError`, since a newer version may have written it.

    Each comment names the usual ways out. `TRANSITIONS` has them all.
    """

    #: Submitted behind another job of its group. Advance or cancel moves it out. Kept until head of its group.
    WAITING = "waiting"
    #: Submitted, snoozed or retried with more than 15 minutes to go. Wake or cancel moves it out. Kept until due.
    SCHEDULED = "scheduled"
    #: Accepted, woken, advanced, continued, snoozed, held, redriven. Claim or cancel moves it out. Kept until claimed.
    QUEUED = "queued"
    #: Claimed by a worker. Settle moves it out; after the lease also a later claim or nudge. Kept for the lease.
    RUNNING = "running"
    #: An attempt failed or was lost and another is allowed. Claim or cancel moves it out. Kept until claimed.
    RETRYING = "retrying"
    #: Waits for a limit, a pause, its type or a signal. Unpark, signal or cancel moves it out. Kept until released.
    PARKED = "parked"
    #: Settled. Final. Kept for the retention time.
    SUCCEEDED = "succeeded"
    #: Failed for good. An operator's redrive or cancel moves it out. Kept for the retention time.
    DEAD = "dead"
    #: Cancelled before, between or during its attempts. Final. Kept for the retention time.
    CANCELLED = "cancelled"
    #: Too old to be of use when a run would have begun. Final, and not a failure. Kept for the retention time.
    EXPIRED = "expired"

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
    STEP = "record_step"
    CANCEL = "cancel"
    WAKE = "wake"
    PARK = "park"
    UNPARK = "unpark"
    SIGNAL = "signal"
    START_NODE = "start_node"
    MARK_NODE = "mark_node"
    LOOK = "look"
    ADD_NODES = "add_nodes"
    NUDGE = "nudge"
    RESEND = "resend"
    REDRIVE = "redrive"
    REWRITE = "rewrite"
    JOIN = "join_debounce"
    UNDO = "undo"
    SUPERSEDE = "supersede"
    ADVANCE = "advance"
    FORGET = "forget"


TERMINAL: Final = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED, State.EXPIRED})
#: A job in one of these has no effect, and never will: none of them can be redriven. But see
#: `flows.is_blocked`: a job may replace the cancelled document of a node of a flow that has not started.
WITHOUT_EFFECT: Final = frozenset({State.CANCELLED, State.EXPIRED})
#: No run, cancel or redrive changes a job in one of these. A dead one may be redriven.
FINAL_STATES: Final = (State.SUCCEEDED, State.CANCELLED, State.EXPIRED)
#: A cancel ends a job in one of these at once. A dead job is discarded, and its group advances.
AT_REST: Final = frozenset({state for state in State if state not in TERMINAL | {State.RUNNING}} | {State.DEAD})

#: Write → state before → states after. `None` before means a missing or expired document.
TRANSITIONS: Final[Mapping[Write, Mapping[State | None, frozenset[State]]]] = {
    Write.INSERT: {None: frozenset({State.WAITING, State.SCHEDULED, State.QUEUED})},
    # The node of a flow that has no job yet, or a document which says that it was blocked.
    Write.START_NODE: {before: frozenset({State.WAITING, State.QUEUED}) for before in (None, State.CANCELLED)},
    # It is skipped or blocked; or it was blocked, and is skipped.
    Write.MARK_NODE: {before: frozenset({State.CANCELLED}) for before in (None, State.CANCELLED)},
    Write.CLAIM: {
        State.QUEUED: frozenset({State.RUNNING}),
        State.RETRYING: frozenset({State.RUNNING}),
        State.RUNNING: frozenset({State.RUNNING}),  # the lease has expired: its worker is presumed dead
        State.SCHEDULED: frozenset({State.RUNNING}),  # its time has come; wake may still be on its way
    },
    Write.SETTLE: {
        State.RUNNING: frozenset(
            {
                *(State.SUCCEEDED, State.DEAD, State.CANCELLED, State.EXPIRED),
                *(State.RETRYING, State.QUEUED, State.SCHEDULED, State.PARKED),
            }
        )
    },
    Write.RELEASE: {State.RUNNING: frozenset({State.RETRYING})},
    Write.CHECKPOINT: {State.RUNNING: frozenset({State.RUNNING})},
    Write.STEP: {State.RUNNING: frozenset({State.RUNNING})},
    Write.CANCEL: {
        **{state: frozenset({State.CANCELLED}) for state in State if state in AT_REST},
        State.RUNNING: frozenset({State.RUNNING}),  # a request: only the run itself may end the job
    },
    Write.WAKE: {State.SCHEDULED: frozenset({State.QUEUED})},
    # Publish finds its pause before it sends a message.
    Write.PARK: {State.QUEUED: frozenset({State.PARKED}), State.RETRYING: frozenset({State.PARKED})},
    Write.UNPARK: {State.PARKED: frozenset({State.QUEUED})},
    Write.SIGNAL: {
        **{state: frozenset({state}) for state in State if state not in TERMINAL},
        State.PARKED: frozenset({State.PARKED, State.QUEUED}),  # queued: it waits for this signal
        State.DEAD: frozenset({State.DEAD}),  # the close of a batch, which a redrive finds
    },
    # A flow looks at its nodes once more.
    Write.LOOK: {
        State.RUNNING: frozenset({State.RUNNING}),
        State.PARKED: frozenset({State.QUEUED}),
        State.QUEUED: frozenset({State.QUEUED}),  # for the end of its wait
    },
    # One transaction adds the nodes of a flow, and also asks for a look.
    Write.ADD_NODES: {
        **{state: frozenset({state}) for state in State if state not in TERMINAL},
        State.PARKED: frozenset({State.PARKED, State.QUEUED}),
    },
    Write.NUDGE: {
        State.QUEUED: frozenset({State.QUEUED, State.DEAD}),  # dead: too many nudges without a claim
        State.RETRYING: frozenset({State.RETRYING, State.DEAD}),
        State.RUNNING: frozenset({State.RETRYING}),
        State.SCHEDULED: frozenset({State.QUEUED}),  # the scheduler has missed it
    },
    # Publish could not send the message of this state. The change makes publish send it again.
    Write.RESEND: {state: frozenset({state}) for state in (State.QUEUED, State.RETRYING, State.DEAD)},
    Write.REDRIVE: {State.DEAD: frozenset({State.QUEUED, State.WAITING})},
    # A migration changes the payload alone. A running job is left, because its run reads the present payload.
    Write.REWRITE: {state: frozenset({state}) for state in State if state is not State.RUNNING},
    # A later submission of its burst moves a job that no worker has claimed, or replaces the payload of one that waits.
    Write.JOIN: {
        State.SCHEDULED: frozenset({State.SCHEDULED, State.QUEUED}),
        State.QUEUED: frozenset({State.QUEUED, State.SCHEDULED}),
        State.RETRYING: frozenset({State.RETRYING}),
        State.PARKED: frozenset({State.PARKED}),
    },
    # The job that undoes it is inserted by the same transaction.
    Write.UNDO: {State.SUCCEEDED: frozenset({State.SUCCEEDED})},
    # The job that supersedes it is inserted by the same transaction. It also cancels this one, if that is possible.
    Write.SUPERSEDE: {state: frozenset({State.CANCELLED if state in AT_REST else state}) for state in State},
    # The document is deleted, so no state follows.
    Write.FORGET: {},
    Write.ADVANCE: {State.WAITING: frozenset({State.QUEUED, State.SCHEDULED})},
}


def allowed(write: Write, before: State | None, after: State) -> bool:
    return after in TRANSITIONS[write].get(before, frozenset())
