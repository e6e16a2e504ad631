"""Wake: the scheduler calls it each minute, and it queues the scheduled jobs that are due soon."""

from datetime import timedelta

from tidemill import composition
from tidemill.worker.message_run import Invocation


def handle(event: object, context: Invocation) -> None:  # noqa: ARG001 - as Lambda calls it
    time_left = timedelta(milliseconds=context.get_remaining_time_in_millis())
    woken = composition.waker().wake(time_left=time_left)
    telemetry = composition.telemetry()
    telemetry.woken(woken)
    telemetry.flush()
