"""Publish: takes stream records of the jobs table, and returns the records that Lambda must retry."""

from collections.abc import Mapping
from typing import Any

from tidemill import composition
from tidemill.dynamodb import stream
from tidemill.system import clock


def handle(event: Mapping[str, Any], context: object) -> Mapping[str, Any]:  # noqa: ARG001 - as Lambda calls it
    batch = stream.read(event, lanes=composition.lane_urls().keys(), now=clock.now())
    published = composition.publisher().publish(batch.changes)
    telemetry = composition.telemetry()
    telemetry.published(published)
    failed = [*published.failed]
    for given_up in batch.given_up:
        telemetry.record_given_up(given_up.sequence, given_up.error)
    unreadable = batch.unreadable
    if unreadable:
        telemetry.unreadable_record(unreadable.sequence, unreadable.error)
        failed.append(unreadable.sequence)
    telemetry.flush()
    if unreadable and unreadable.leads:
        # Only an error makes the mapping bisect the batch, until the record is alone and can be given up.
        raise unreadable.error
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in failed]}
