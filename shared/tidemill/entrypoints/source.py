"""Source: publishes what one source of events delivers, and returns what must come again.

One function for each source. SQS calls it with the messages of an EventBridge rule, a bucket or a topic, and DynamoDB
Streams with the changes of a table.
"""

from collections.abc import Mapping
from typing import Any

from tidemill.application.event_types import EventSource
from tidemill.aws import clients
from tidemill.composition import parts
from tidemill.domain.errors import MissingResourceError, UnloadedJobTypeError
from tidemill.names import Env
from tidemill.settings import setting
from tidemill.sources.intake import Intake
from tidemill.sqs.source_queue import SourceQueue
from tidemill.telemetry.outcome_log import Telemetry, record_not_published
from tidemill.telemetry.tracing import Invocation, tracing


def handle(event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
    records = event["Records"]
    telemetry = parts().telemetry()
    intake = _intake(telemetry)
    with tracing().invocation("source", context), tracing().submit(context.aws_request_id) as trace:
        of_a_stream = records[0]["eventSource"] == "aws:dynamodb"
        again = intake.stream(records, trace=trace) if of_a_stream else intake.messages(records, trace=trace)
    telemetry.flush()
    return {"batchItemFailures": [{"itemIdentifier": each} for each in again]}


def _intake(telemetry: Telemetry) -> Intake:
    """For one invocation. Raises an error if this code lacks the source: then all comes again."""
    source = _source(setting(Env.SOURCE))
    queue = SourceQueue(clients.sqs(), queue=setting(Env.SOURCE_QUEUE), dead_letters=setting(Env.SOURCE_DEAD_LETTERS))
    return Intake(
        source,
        parts().submit,
        tenant=setting(Env.SOURCE_TENANT),
        forward=queue.forward,
        accepted=telemetry.accepted,
        changed=lambda record, error: telemetry.record_changed(source.name, record, error),
        failed=lambda record, error: record_not_published(source.name, record, error),
    )


def _source(name: str) -> EventSource:
    known = parts().job_types
    if found := known.sources.get(name):
        return found
    for fault in known.faults:
        raise UnloadedJobTypeError(f"source {name}", tuple(known.sources), str(fault))
    raise MissingResourceError(f"this code has no event_source {name!r}; deploy the stack and its code together")
