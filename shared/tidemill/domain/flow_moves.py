"""Which changes of documents let flows go on. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tidemill.domain.changes import Change
from tidemill.domain.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowMove:
    """Of one flow: the names of the nodes that have ended by some changes."""

    #: The first of the changes.
    sequence: str
    ended: frozenset[str] = field(default_factory=frozenset)
    #: One of them had been redriven.
    redriven: bool = False


def flow_moves(changes: Iterable[Change]) -> dict[tuple[str, str], FlowMove]:
    """By tenant and id of the flow."""
    moves: dict[tuple[str, str], FlowMove] = {}
    for change in changes:
        after = change.after
        if after and after.flow and _has_ended(change.before, after):
            flow = (after.tenant, after.flow.id)
            move = moves.get(flow) or FlowMove(sequence=change.sequence)
            moves[flow] = replace(
                move, ended=move.ended | {after.flow.node}, redriven=move.redriven or bool(after.redrives)
            )
    return moves


def _has_ended(before: Job | None, after: Job) -> bool:
    """A node that was blocked, and is skipped now, ends a second time."""
    if not after.state.terminal:
        return False
    now = (after.state, after.created_at, after.flow)
    return before is None or (before.state, before.created_at, before.flow) != now
