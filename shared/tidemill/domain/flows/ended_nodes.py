"""The nodes of flows that have ended by some changes of documents, so that their flows go on. Pure."""

from collections.abc import Iterable

from msgspec import Struct, field

from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.job import Job
from tidemill.domain.records import replace


class EndedNodes(Struct, frozen=True, kw_only=True):
    """The ended nodes of one flow."""

    #: The first of the changes.
    sequence: str
    names: frozenset[str] = field(default_factory=frozenset)
    #: One of them had been redriven.
    redriven: bool = False


def ended_nodes(changes: Iterable[Change]) -> dict[tuple[str, str], EndedNodes]:
    """By tenant and id of the flow."""
    found: dict[tuple[str, str], EndedNodes] = {}
    for change in changes:
        after = change.after
        if after and after.flow and _has_ended(change.before, after):
            flow = (after.tenant, after.flow.id)
            ended = found.get(flow) or EndedNodes(sequence=change.sequence)
            found[flow] = replace(
                ended, names=ended.names | {after.flow.node}, redriven=ended.redriven or bool(after.redrives)
            )
    return found


def _has_ended(before: Job | None, after: Job) -> bool:
    """A node that was blocked, and is skipped now, ends a second time."""
    if not after.state.terminal:
        return False
    now = (after.state, after.created_at, after.flow)
    return before is None or (before.state, before.created_at, before.flow) != now
