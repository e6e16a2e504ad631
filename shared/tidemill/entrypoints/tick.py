"""Submit the job of a periodic type when the scheduler calls: one job, however often the call is delivered.

The idempotency key of the submission holds the scheduled time, which is the same in every delivery of one call. If the
submission fails, the error is raised: Lambda retries, the alarm fires, and the call ends in the queue of missed calls.
"""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from tidemill import composition
from tidemill.domain.submission import Submission
from tidemill.names import SCHEDULE_TENANT, SCHEDULED_TIME, TICK_SCHEDULED_AT, TICK_TYPE
from tidemill.system import clock
from tidemill.telemetry.tracing import tracing


def handle(event: Mapping[str, Any], context: Any) -> None:
    type_, scheduled_at = event[TICK_TYPE], event[TICK_SCHEDULED_AT]
    if scheduled_at == SCHEDULED_TIME:
        # The scheduler of the emulator does not fill in the time. Schedules have a precision of one minute.
        scheduled_at = f"{clock.now().astimezone(UTC):%Y-%m-%dT%H:%MZ}"
    telemetry = composition.telemetry()
    submission = Submission(type=type_, key=f"{type_} {scheduled_at}")
    with tracing().invocation("tick", context), tracing().submit(context.aws_request_id) as trace:
        telemetry.accepted(composition.submit()(submission, tenant=SCHEDULE_TENANT, trace=trace))
    telemetry.flush()
