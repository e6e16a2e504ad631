"""Publish: takes stream records of the jobs table, and returns the records that Lambda must retry."""

import time
from collections.abc import Mapping
from typing import Any

from tidemill import composition
from tidemill.dynamodb import stream
from tidemill.telemetry.tracing import Invocation, tracing


def handle(event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
    with tracing().invocation("publish", context):
        return _published(event)


def _published(event: Mapping[str, Any]) -> Mapping[str, Any]:
    began_ns = time.time_ns()
    batch = stream.read(event, lanes=composition.lane_urls().keys())
    published = composition.publisher().publish(batch.changes, batch.unreadable)
    telemetry = composition.telemetry()
    telemetry.published(published)
    telemetry.flush()
    tracing().published(published.sent, began_ns=began_ns)
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in published.failed]}
