"""Reads the event that the stream of the jobs table sends to publish."""

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
class UnreadableRecord:
    """A stream record that this code cannot read: malformed, or written by a newer version."""

    sequence: str
    error: MalformedDocumentError
    #: The record is the first of several in its batch.
    leads: bool


@dataclass(slots=True)
class Batch:
    """The decoded records of one event."""

    changes: list[Change] = field(default_factory=list)
    #: The first recent unreadable record. The stream delivers it and its successors again.
    unreadable: UnreadableRecord | None = None
    #: Records that stayed unreadable for `PATIENCE`. They no longer block others.
    given_up: list[UnreadableRecord] = field(default_factory=list)


def read(event: Mapping[str, Any], *, lanes: Collection[Lane], now: datetime) -> Batch:
    """The changes before the first unreadable record. Lambda retries a batch from its first failed record on.

    A record is unreadable too if its job is on a lane that is not in `lanes`, the deployed ones.
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
            unreadable = UnreadableRecord(images["SequenceNumber"], error, leads=not batch.changes and len(records) > 1)
            if now - _written_at(images) < PATIENCE:
                batch.unreadable = unreadable
                break
            batch.given_up.append(unreadable)
    return batch


def _written_at(images: Mapping[str, Any]) -> datetime:
    """Lambda passes it in epoch seconds.

    https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
    """
    return datetime.fromtimestamp(float(images["ApproximateCreationDateTime"]), UTC)


def _require_lane(job: Job | None, lanes: Collection[Lane]) -> None:
    if job and job.state in DISPATCHED_STATES and job.lane not in lanes:
        deployed = ", ".join(sorted(lanes))
        raise MalformedDocumentError(f"lane {job.lane} of job {job.id} is not deployed; deployed lanes: {deployed}")


def _decoded(image: Item | None) -> Job | None:
    return None if image is None else decode(image)
