"""Publish: takes stream records of the jobs table, and returns the records that Lambda must retry."""

from collections.abc import Mapping
from typing import Any

from tidemill import composition
from tidemill.dynamodb import stream


def handle(event: Mapping[str, Any], context: object) -> Mapping[str, Any]:  # noqa: ARG001 - as Lambda calls it
    batch = stream.read(event, lanes=composition.lane_urls().keys())
    published = composition.publisher().publish(batch.changes, batch.unreadable)
    telemetry = composition.telemetry()
    telemetry.published(published)
    telemetry.flush()
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in published.failed]}
