"""Wake: the scheduler calls it each minute, and it queues the scheduled jobs that are due soon."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tidemill import composition
from tidemill.application.ports import WHOLE, Part
from tidemill.names import WAKE_PART, WAKE_PARTS
from tidemill.worker.message_run import Invocation


def handle(event: Mapping[str, Any] | None, context: Invocation) -> None:
    """An operator may call it without an event: it then does the work of all parts."""
    time_left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    part = Part(int(event[WAKE_PART]), int(event[WAKE_PARTS])) if event else WHOLE
    woken = composition.waker().wake(time_left=time_left, part=part)
    telemetry = composition.telemetry()
    telemetry.woken(woken)
    telemetry.flush()
