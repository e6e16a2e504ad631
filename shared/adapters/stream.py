"""The stream of the jobs table, as an event of its Lambda trigger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.adapters.clients import Item
from shared.adapters.document import decode
from shared.application.publish import Change
from shared.domain.errors import MalformedDocumentError
from shared.domain.job import Job


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that this code cannot read: rubbish, or the writing of a newer version."""

    sequence: str
    error: MalformedDocumentError
    #: Others come behind it in its batch, and none before it.
    leads: bool


def read(event: Mapping[str, Any]) -> tuple[list[Change], Unreadable | None]:
    """The changes up to the first that cannot be read, and that one.

    What comes behind it is left for another time, since a batch is tried again from its first failed record on.
    """
    records = event["Records"]
    changes: list[Change] = []
    for record in records:
        images = record["dynamodb"]
        try:
            before, after = (_decoded(images.get(image)) for image in ("OldImage", "NewImage"))
            changes.append(Change(images["SequenceNumber"], before, after))
        except MalformedDocumentError as error:
            return changes, Unreadable(images["SequenceNumber"], error, leads=not changes and len(records) > 1)
    return changes, None


def _decoded(image: Item | None) -> Job | None:
    return None if image is None else decode(image)
