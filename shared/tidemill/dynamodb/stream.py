"""The stream of the jobs table, as an event of its Lambda trigger."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tidemill.application.publish import PATIENCE, Change
from tidemill.aws.clients import Item
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.dynamodb.document import decode
from tidemill.names import DISPATCHED_STATES, Lane


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that this code cannot read: rubbish, or the writing of a newer version."""

    sequence: str
    error: MalformedDocumentError
    #: Others come behind it in its batch, and none before it.
    leads: bool


@dataclass(slots=True)
class Batch:
    """What the records of an event say."""

    changes: list[Change] = field(default_factory=list)
    #: The first that cannot be read and is young. What comes behind it is left for another time.
    unreadable: Unreadable | None = None
    #: Those that nobody has been able to read for so long that they must not hold up others any more.
    given_up: list[Unreadable] = field(default_factory=list)


def read(event: Mapping[str, Any], *, lanes: Collection[Lane], now: datetime) -> Batch:
    """The changes up to the first that cannot be read: a batch is tried again from its first failed record on.

    What may owe a message to none of `lanes`, those that are deployed, is as good as unreadable.
    """
    records = event["Records"]
    batch = Batch()
    for record in records:
        images = record["dynamodb"]
        try:
            before, after = (_decoded(images.get(image)) for image in ("OldImage", "NewImage"))
            _require_lane(after, lanes)
            batch.changes.append(Change(images["SequenceNumber"], before, after, _written_at(images)))
        except MalformedDocumentError as error:
            unreadable = Unreadable(images["SequenceNumber"], error, leads=not batch.changes and len(records) > 1)
            if now - _written_at(images) < PATIENCE:
                batch.unreadable = unreadable
                break
            batch.given_up.append(unreadable)
    return batch


def _written_at(images: Mapping[str, Any]) -> datetime:
    """Lambda tells it in epoch seconds.

    https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
    """
    return datetime.fromtimestamp(float(images["ApproximateCreationDateTime"]), UTC)


def _require_lane(job: Job | None, lanes: Collection[Lane]) -> None:
    if job and job.state in DISPATCHED_STATES and job.lane not in lanes:
        raise MalformedDocumentError(f"job {job.id} is for lane {job.lane}; {', '.join(sorted(lanes))} are deployed")


def _decoded(image: Item | None) -> Job | None:
    return None if image is None else decode(image)
