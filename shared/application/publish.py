"""Publish: what the stream says has changed goes to the lanes. It may say so twice; the claim stands that."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from shared.application.ports import Clock, JobStore, Lanes, Payloads
from shared.domain.dispatch import Dispatch, dispatch
from shared.domain.errors import StoreUnavailableError
from shared.domain.job import Job

#: For how long after a job has ended a trouble of its own may hold up the stream, which others share: a newer version's
#: document behind it, or too many at its group at once. Then its group is left to reconcile.
PATIENCE: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Change:
    """One stream record: the document before and after. `sequence` names it to the stream."""

    sequence: str
    before: Job | None
    after: Job | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """What was to follow the end of a job did not."""

    job: Job
    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What was sent, whose turn it became, and the sequences of the changes that must come again."""

    sent: Sequence[Dispatch]
    advanced: Sequence[Job] = ()
    failed: Sequence[str] = ()
    #: Troubles that are not the store's, whether their change comes again or not.
    troubles: Sequence[Trouble] = ()


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
        advanced: list[Job] = []
        troubles: list[Trouble] = []
        for change, job in _ends(changes):
            try:
                if (following := self._follow(change, job)) is not None:
                    advanced.append(following)
            except StoreUnavailableError:
                failed.append(change.sequence)
            except Exception as error:  # noqa: BLE001 - whatever it is, it may not cost others their messages
                troubles.append(Trouble(job, error))
                if job.finished_at and self._clock() - job.finished_at < PATIENCE:
                    failed.append(change.sequence)
        return Published(sent=sent, advanced=advanced, failed=list(dict.fromkeys(failed)), troubles=troubles)

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

    def _follow(self, change: Change, job: Job) -> Job | None:
        if change.after is None:
            self._payloads.delete(job)
            return None
        return self._store.advance(job.tenant, job.group or "", now=self._clock())


def _ends(changes: Iterable[Change]) -> Iterable[tuple[Change, Job]]:
    """The changes by which a job of a group ended, or any job was removed, each with that job.

    Of several in one group the last stands for all: to let the group go on is to look how far it can.
    """
    ends: dict[tuple[str, str | None, str | None], tuple[Change, Job]] = {}
    for change in changes:
        before, after = change.before, change.after
        if after is None:
            if before is not None:
                ends[before.tenant, None, before.id] = change, before
        elif after.group is not None and after.state.terminal and not (before and before.state is after.state):
            ends[after.tenant, after.group, None] = change, after
    return ends.values()
