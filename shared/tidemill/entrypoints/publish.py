"""Publish: takes stream records of the jobs table, and returns the records that Lambda must retry."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from tidemill.composition import parts
from tidemill.dynamodb.dispatch import stream
from tidemill.names import Env
from tidemill.settings import setting
from tidemill.telemetry.outcome_log import logger
from tidemill.telemetry.tracing import Invocation, tracing


def handle(event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
    with tracing().invocation("publish", context):
        return _published(event)


def _published(event: Mapping[str, Any]) -> Mapping[str, Any]:
    began_ns = time.time_ns()
    if stream.of_another_table(event, setting(Env.JOBS_TABLE)):
        # The jobs of the other table have another epoch. Its mapping tries again until it is deleted, or until its
        # own function is back: a record that was dropped here would be lost to that function.
        logger().warning("records of another table", extra={"records": len(event["Records"])})
        return _failed(record["dynamodb"]["SequenceNumber"] for record in event["Records"])
    batch = stream.read(event, lanes=parts().lane_urls.keys())
    published = parts().publisher.publish(batch.changes, batch.unreadable)
    telemetry = parts().telemetry()
    telemetry.published(published)
    telemetry.flush()
    tracing().published(published.sent, began_ns=began_ns)
    return _failed(published.failed)


def _failed(sequences: Iterable[str]) -> Mapping[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": sequence} for sequence in sequences]}
