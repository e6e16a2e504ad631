"""Publish advances a group when a job of it has ended, or begins to wait."""

from collections.abc import Iterator, Sequence
from functools import partial

from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.dispatch.reactions import PublishStep, Step
from tidemill.application.ports import Clock, GroupStore
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.job import Job
from tidemill.domain.states import State


class GroupReaction:
    """`Reaction`: one step for each group, since an advance moves the head as far as possible."""

    def __init__(self, *, store: GroupStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __call__(self, changes: Sequence[Change]) -> Iterator[Step]:
        # Each group with the first of its changes.
        groups: dict[tuple[str, str], str] = {}
        for change in changes:
            if (job := _moves_group(change)) and job.group.key is not None:
                groups.setdefault((job.tenant, job.group.key), change.sequence)
        for (tenant, group), sequence in groups.items():
            work = Work(kind=Kind.ADVANCE, tenant=tenant, name=group)
            yield Step(sequence, PublishStep.ADVANCE, work, partial(self._advance, tenant, group))

    def _advance(self, tenant: str, group: str) -> Job | None:
        return self._store.advance(tenant, group, now=self._clock())


def _moves_group(change: Change) -> Job | None:
    """Return the job if its group may advance: it ended, or it began to wait, and the head may have ended just before.

    Or it was dead and blocked its group, and an operator deleted it. The deletion record is the only sign of that.
    """
    before, after = change.before, change.after
    if after is None:
        return before if before and before.state is State.DEAD and before.group.blocks else None
    if before and before.state is after.state:
        return None
    return after if after.state.terminal or after.state is State.WAITING else None
