"""Publish: what the stream says has changed goes to the lanes. It may say so twice; the claim stands that."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.application.ports import Clock, JobStore, Lanes, Payloads
from shared.domain.dispatch import Dispatch, dispatch
from shared.domain.errors import StoreUnavailableError, TransactionConflictError
from shared.domain.job import Job


@dataclass(frozen=True, slots=True)
class Change:
    """One stream record: the document before and after. `sequence` names it to the stream."""

    sequence: str
    before: Job | None
    after: Job | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What was sent, whose turn it became, and the sequences of the changes that must come again."""

    sent: Sequence[Dispatch]
    advanced: Sequence[Job] = ()
    failed: Sequence[str] = ()


class Publisher:
    """The use case."""

    def __init__(self, *, store: JobStore, payloads: Payloads, lanes: Lanes, clock: Clock) -> None:
        self._store = store
        self._payloads = payloads
        self._lanes = lanes
        self._clock = clock

    def publish(self, changes: Sequence[Change]) -> Published:
        """Send the messages owed for `changes`, let groups go on whose head has ended, and tidy up after the gone."""
        sent, failed = self._send(changes)
        advanced = []
        for change in changes:
            try:
                if (job := self._follow(change)) is not None:
                    advanced.append(job)
            except (StoreUnavailableError, TransactionConflictError):
                failed.append(change.sequence)
        return Published(sent=sent, advanced=advanced, failed=failed)

    def _send(self, changes: Sequence[Change]) -> tuple[list[Dispatch], list[str]]:
        now = self._clock()
        owed = [
            (change.sequence, message)
            for change in changes
            if (message := dispatch(change.before, change.after, now=now)) is not None
        ]
        refused = set(self._lanes.send([message for _, message in owed])) if owed else set()
        return (
            [message for index, (_, message) in enumerate(owed) if index not in refused],
            [sequence for index, (sequence, _) in enumerate(owed) if index in refused],
        )

    def _follow(self, change: Change) -> Job | None:
        before, after = change.before, change.after
        if after is None:
            if before is not None:
                self._payloads.delete(before)
            return None
        if after.group is None or not after.state.terminal or (before and before.state is after.state):
            return None
        return self._store.advance(after.tenant, after.group, now=self._clock())
