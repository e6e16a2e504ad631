"""Reads the event that the stream of the jobs table sends to publish."""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, field

from tidemill.application.dispatch.publish import UnreadableChange
from tidemill.aws.clients import Item
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.dynamodb.document import decode, split_key
from tidemill.names import DISPATCHED_STATES, PAYLOAD_LOCATION_ATTRIBUTE, Lane


class Batch(Struct):
    """The records of one event."""

    changes: list[Change] = field(default_factory=list)
    #: Malformed, or written by a newer version.
    unreadable: list[UnreadableChange] = field(default_factory=list)


def read(event: Mapping[str, Any], *, lanes: Collection[Lane]) -> Batch:
    """A record is unreadable too if its job is on a lane that is not in `lanes`, the deployed ones."""
    batch = Batch()
    for record in event["Records"]:
        images = record["dynamodb"]
        sequence: str = images["SequenceNumber"]
        try:
            before, after = (_decoded(images.get(image)) for image in ("OldImage", "NewImage"))
            _require_lane(after, lanes)
            batch.changes.append(Change(sequence, before, after))
        except MalformedDocumentError as error:
            removed: Item = {} if "NewImage" in images else images.get("OldImage", {})
            payload_at = removed.get(PAYLOAD_LOCATION_ATTRIBUTE, {}).get("S")
            batch.unreadable.append(UnreadableChange(sequence, *split_key(images["Keys"]), error, payload_at))
    return batch


def of_another_table(event: Mapping[str, Any], table: str) -> bool:
    """Whether the records come from the stream of another table than `table`.

    A deployment onto a restored table changes the function before it replaces the mapping of the former stream.
    https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html has an example of a record with its ARN.
    """
    arns = (record.get("eventSourceARN", "") for record in event["Records"])
    return any(arn and f":table/{table}/stream/" not in arn for arn in arns)


def _require_lane(job: Job | None, lanes: Collection[Lane]) -> None:
    if job and job.state in DISPATCHED_STATES and job.lane not in lanes:
        deployed = ", ".join(sorted(lanes))
        raise MalformedDocumentError(f"lane {job.lane} of job {job.id} is not deployed; deployed lanes: {deployed}")


def _decoded(image: Item | None) -> Job | None:
    return None if image is None else decode(image)
