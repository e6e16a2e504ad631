"""Source: publishes what one source of events delivers, and returns what must come again.

One function for each source. SQS calls it with the messages of an EventBridge rule, a bucket or a topic, and DynamoDB
Streams with the changes of a table.
"""

from collections.abc import Mapping
from typing import Any

from tidemill import composition, source_composition
from tidemill.telemetry.tracing import Invocation, tracing


def handle(event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
    records = event["Records"]
    telemetry = composition.telemetry()
    intake = source_composition.intake(telemetry)
    with tracing().invocation("source", context), tracing().submit(context.aws_request_id) as trace:
        of_a_stream = records[0]["eventSource"] == "aws:dynamodb"
        again = intake.stream(records, trace=trace) if of_a_stream else intake.messages(records, trace=trace)
    telemetry.flush()
    return {"batchItemFailures": [{"itemIdentifier": each} for each in again]}
