"""Publish: what changed in the jobs table in, the records whose message was not taken out."""

from collections.abc import Mapping
from typing import Any

from shared.adapters import composition, stream


def handle(event: Mapping[str, Any], context: object) -> Mapping[str, Any]:  # noqa: ARG001
    changes, unreadable = stream.read(event)
    published = composition.publisher().publish(changes)
    telemetry = composition.telemetry()
    telemetry.published(published)
    failed = [*published.failed]
    if unreadable:
        telemetry.unreadable(unreadable.sequence, unreadable.error)
        failed.append(unreadable.sequence)
    telemetry.flush()
    if unreadable and unreadable.leads:
        # Only an error has the mapping halve a batch, until the record is alone and can be given up by itself.
        raise unreadable.error
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in failed]}
