"""The stream of the jobs table, as an event of its Lambda trigger."""

from collections.abc import Mapping
from typing import Any

from shared.adapters.document import decode
from shared.application.publish import Change
from shared.domain.errors import MalformedDocumentError


def read(event: Mapping[str, Any]) -> tuple[list[Change], Mapping[str, MalformedDocumentError]]:
    """The changes, and by sequence those that this code cannot read: rubbish, or the writing of a newer version.

    An unreadable record is answered as failed: the mapping tries it again, in case a deployment is under way, parts
    it from its batch, and in the end names it to the failure destination.
    """
    changes: list[Change] = []
    unreadable: dict[str, MalformedDocumentError] = {}
    for record in event["Records"]:
        images = record["dynamodb"]
        sequence = images["SequenceNumber"]
        before, after = images.get("OldImage"), images.get("NewImage")
        try:
            changes.append(Change(sequence, before and decode(before), after and decode(after)))
        except MalformedDocumentError as error:
            unreadable[sequence] = error
    return changes, unreadable
