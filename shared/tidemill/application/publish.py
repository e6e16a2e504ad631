"""Publish: what the stream says has changed goes to the lanes. It may say so twice; the claim stands that."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tidemill.application.ports import Clock, GroupStore, Lanes, Payloads
from tidemill.domain.dispatch import Dispatch, dispatch
from tidemill.domain.job import Job

#: For how long a record may hold up the stream, which others share: one that cannot be read, or the end of a job whose
#: group meets trouble. Then it is given up, an alarm rings, and reconcile is called.
PATIENCE: Final = timedelta(minutes=5)
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Change:
    """One stream record: the document before and after. `sequence` names it to the stream."""

    sequence: str
    before: Job | None
    after: Job | None
    #: By DynamoDB's clock. What the document says is as of when its writer began, who may have been held up.
    written_at: datetime


@dataclass(frozen=True, slots=True)
class Trouble:
    """What was to follow the end of a job did not."""

    sequence: str
    job: Job
    error: Exception
    #: Its change does not come again: reconcile looks after it.
    given_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What was sent, whose turn it became, and the sequences of the changes that must come again."""

    sent: Sequence[Dispatch]
    advanced: Sequence[Job] = ()
    failed: Sequence[str] = ()
    troubles: Sequence[Trouble] = ()


class Publisher:
    """The use case."""

    def __init__(self, *, store: GroupStore, payloads: Payloads, lanes: Lanes, clock: Clock) -> None:
        self._store = store
        self._payloads = payloads
        self._lanes = lanes
        self._clock = clock

    def publish(self, changes: Sequence[Change]) -> Published:
        """Send the messages owed for `changes`, let groups go on whose head has ended, and tidy up after the gone."""
        sent, failed = self._send(changes)
        ends = _ends(changes)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            came_to = list(pool.map(self._follow, ends))
        troubles = [what for what in came_to if isinstance(what, Trouble)]
        failed += [trouble.sequence for trouble in troubles if not trouble.given_up]
        return Published(
            sent=sent,
            advanced=[what for what in came_to if isinstance(what, Job)],
            failed=list(dict.fromkeys(failed)),
            troubles=troubles,
        )

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

    def _follow(self, end: "_End") -> Job | Trouble | None:
        """The job whose turn it is in the group of the one that ended, or why nothing could be done."""
        job = end.job
        try:
            if end.gone:
                self._payloads.delete(job)
                return None
            return self._store.advance(job.tenant, job.group or "", now=self._clock())
        except Exception as error:  # noqa: BLE001 - whatever it is, it may not cost others their messages
            # A store that does not answer may be one hot item of a group, or files while the table is well.
            young = self._clock() - end.change.written_at < PATIENCE
            return Trouble(end.change.sequence, job, error, given_up=end.gone or not young)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """A job that ended in its group, or one with a payload elsewhere that is gone from the table."""

    change: Change
    job: Job
    gone: bool


def _ends(changes: Iterable[Change]) -> list[_End]:
    """Of several in one group the last stands for all: to let the group go on is to look how far it can."""
    ends: dict[tuple[str, ...], _End] = {}
    for change in changes:
        before, after = change.before, change.after
        # A document that is past its time may be replaced before it is removed, by one with a payload of its own.
        if before and before.payload_at and not (after and after.payload_at == before.payload_at):
            ends["gone", before.tenant, before.id] = _End(change=change, job=before, gone=True)
        if after and after.group is not None and after.state.terminal and not (before and before.state is after.state):
            ends["ended", after.tenant, after.group] = _End(change=change, job=after, gone=False)
    return list(ends.values())
