"""Work: a batch of messages from a lane in, the ones that must stay on it out."""

from collections.abc import Mapping
from typing import Any

from tidemill import composition
from tidemill.worker.message_run import Invocation


def handle(event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
    return composition.worker().work(event, context)
