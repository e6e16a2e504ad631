"""Publish: what the stream says has changed goes to the lanes. It may say so twice; the claim stands that."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.application.ports import Clock, Lanes
from shared.domain.dispatch import Dispatch, dispatch
from shared.domain.job import Job


@dataclass(frozen=True, slots=True)
class Change:
    """One stream record: the document before and after. `sequence` names it to the stream."""

    sequence: str
    before: Job | None
    after: Job | None


@dataclass(frozen=True, slots=True)
class Published:
    """What was sent, and the sequences of the changes whose message was not taken."""

    sent: Sequence[Dispatch]
    failed: Sequence[str]


def publish(changes: Sequence[Change], *, lanes: Lanes, clock: Clock) -> Published:
    """Send the messages owed for `changes`."""
    now = clock()
    owed = [
        (change.sequence, message)
        for change in changes
        if (message := dispatch(change.before, change.after, now=now)) is not None
    ]
    refused = set(lanes.send([message for _, message in owed])) if owed else set()
    return Published(
        sent=[message for index, (_, message) in enumerate(owed) if index not in refused],
        failed=[sequence for index, (sequence, _) in enumerate(owed) if index in refused],
    )
