"""Work: takes a batch of messages of a lane, and returns the messages that must stay on it."""

from collections.abc import Mapping
from typing import Any

from tidemill import worker_composition
from tidemill.telemetry.tracing import tracing
from tidemill.worker.message_run import Invocation


def handle(event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
    with tracing().invocation("work", context):
        return worker_composition.worker().work(event, context)
