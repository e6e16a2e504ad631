"""Publish: send the messages that changed documents owe, advance groups, and delete the payloads of deleted jobs.

The stream may deliver a record twice. Each step may be repeated.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tidemill.application.ports import Clock, GroupStore, Lanes, Payloads
from tidemill.domain.dispatch import Dispatch, dispatch
from tidemill.domain.job import Job

#: How long one record may block its shard of the stream: an unreadable record, or the end of a job whose group cannot
#: advance. Then publish gives it up, an alarm fires, and the alarm calls reconcile.
PATIENCE: Final = timedelta(minutes=5)
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Change:
    """One stream record: the document before and after. `sequence` is its sequence number in the stream."""

    sequence: str
    before: Job | None
    after: Job | None
    #: By DynamoDB's clock. The times in the document come from its writer, which may have been delayed.
    written_at: datetime


@dataclass(frozen=True, slots=True)
class FailedStep:
    """A step after the end of a job failed: the advance of its group, or the deletion of its payload."""

    sequence: str
    job: Job
    error: Exception
    #: The document is deleted, and the step was to delete its payload. Otherwise it was to advance the group.
    gone: bool
    #: The stream does not deliver the change again; reconcile repairs it.
    given_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """`advanced` holds the jobs whose turn came, `failed` the sequences that the stream must deliver again."""

    sent: Sequence[Dispatch]
    advanced: Sequence[Job] = ()
    failed: Sequence[str] = ()
    failed_steps: Sequence[FailedStep] = ()


class Publisher:
    def __init__(self, *, store: GroupStore, payloads: Payloads, lanes: Lanes, clock: Clock) -> None:
        self._store = store
        self._payloads = payloads
        self._lanes = lanes
        self._clock = clock

    def publish(self, changes: Sequence[Change]) -> Published:
        """Send the owed messages, then advance the groups of ended jobs and delete the payloads of deleted jobs."""
        sent, failed = self._send(changes)
        ends = _ends(changes)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            results = list(pool.map(self._follow, ends))
        failed_steps = [result for result in results if isinstance(result, FailedStep)]
        failed += [step.sequence for step in failed_steps if not step.given_up]
        return Published(
            sent=sent,
            advanced=[result for result in results if isinstance(result, Job)],
            failed=list(dict.fromkeys(failed)),
            failed_steps=failed_steps,
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

    def _follow(self, end: "_End") -> Job | FailedStep | None:
        """The next job of the group, if its turn came; a `FailedStep` if the step failed."""
        job = end.job
        try:
            if end.gone:
                self._payloads.delete(job)
                return None
            return self._store.advance(job.tenant, job.group or "", now=self._clock())
        except Exception as error:  # noqa: BLE001 - one failed step must not fail the other records of the batch
            # The store may be unavailable only for one hot group item, or for files. So even such a record has a limit.
            young = self._clock() - end.change.written_at < PATIENCE
            return FailedStep(end.change.sequence, job, error, gone=end.gone, given_up=end.gone or not young)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """A job of a group that ended, or a deleted job whose payload is stored outside its document."""

    change: Change
    job: Job
    gone: bool


def _ends(changes: Iterable[Change]) -> list[_End]:
    """One step for each group, even if several of its jobs ended: an advance moves the head as far as possible."""
    ends: dict[tuple[str, ...], _End] = {}
    for change in changes:
        before, after = change.before, change.after
        # A new job may replace an expired document before DynamoDB deletes it. The new job has another payload.
        if before and before.payload_at and not (after and after.payload_at == before.payload_at):
            ends["gone", before.tenant, before.id] = _End(change=change, job=before, gone=True)
        if after and after.group is not None and after.state.terminal and not (before and before.state is after.state):
            ends["ended", after.tenant, after.group] = _End(change=change, job=after, gone=False)
    return list(ends.values())
