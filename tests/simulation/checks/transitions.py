"""Checks that the engine's table of legal transitions has each step of each job, under the write that made it.

Guards, conditions, the diagram and the contract of the store read that table. `DocumentChangeChecks` knows the legal
steps by itself.
"""

from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import Item, number_of, payload_edited, require, run_ended, state_of, text_of
from tests.simulation.world.world import World
from tidemill.domain.states import TRANSITIONS, State, Write

_LEAVES: Final = {
    State.WAITING: Write.ADVANCE,
    State.SCHEDULED: Write.WAKE,
    State.PARKED: Write.UNPARK,
    State.DEAD: Write.REDRIVE,
}
#: But for the end of a run.
_ENTERS: Final = {State.CANCELLED: Write.CANCEL, State.PARKED: Write.PARK}


class TransitionChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        watch_jobs(world, changed=[self._changed], inserted=self._inserted)

    def _inserted(self, key: str, after: Item) -> None:
        of_a_flow = Write.MARK_NODE if state_of(after) is State.CANCELLED else Write.START_NODE
        self._known(key, of_a_flow if "flow" in after else Write.INSERT, None, after)

    def _changed(self, key: str, before: Item, after: Item) -> None:
        if write := _write(before, after):
            self._known(key, write, state_of(before), after)

    def _known(self, key: str, write: Write, was: State | None, after: Item) -> None:
        now = state_of(after)
        known = now in TRANSITIONS[write].get(was, ())
        require(known, "the table of transitions has each step", f"{write}: {was} -> {now}", key)


def _write(before: Item, after: Item) -> Write | None:
    """None for a write of another kind."""
    was, now = state_of(before), state_of(after)
    if text_of(after, "owner") not in {"", text_of(before, "owner")}:
        return Write.CLAIM
    if run_ended(before, after):
        given_back = now is State.RETRYING and number_of(after, "attempt") < number_of(before, "attempt")
        return Write.RELEASE if given_back else Write.SETTLE
    if number_of(after, "nudges") > number_of(before, "nudges"):
        return Write.NUDGE
    if was is not now and now in _ENTERS and not _differs("superseded_by", before, after):
        return _ENTERS[now]
    signalled = _differs("signals", before, after) and not payload_edited(before, after)
    if was is now or signalled or _differs("superseded_by", before, after):
        same = (
            ("superseded_by", Write.SUPERSEDE),
            ("signals", Write.SIGNAL),
            ("cancel_requested_at", Write.CANCEL),
            ("nudged_at", Write.RESEND),
            ("checkpoint_at", Write.CHECKPOINT),
            ("steps", Write.STEP),
            ("undone", Write.UNDO),
            ("payload", Write.REWRITE),
            ("payload_at", Write.REWRITE),
        )
        return next((write for name, write in same if _differs(name, before, after)), None)
    return _LEAVES.get(was) if was else None


def _differs(name: str, before: Item, after: Item) -> bool:
    return before.get(name) != after.get(name)
