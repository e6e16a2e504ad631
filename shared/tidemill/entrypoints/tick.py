"""Submit the job of a periodic type when the scheduler calls: one job, however often the call is delivered.

The idempotency key of the submission holds the scheduled time, which is the same in every delivery of one call. If the
submission fails, the error is raised: Lambda retries, the alarm fires, and the call ends in the queue of missed calls.
"""

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from tidemill import composition
from tidemill.application.submission.validation import payload_faults
from tidemill.application.waiting.periodic import Call, may_act_unconfirmed, submission
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.waiting.pauses import Pause
from tidemill.names import (
    SCHEDULE_TENANT,
    SCHEDULED_TIME,
    TICK_PAYLOAD,
    TICK_REQUESTED,
    TICK_SCHEDULED_AT,
    TICK_TYPE,
)
from tidemill.system import clock
from tidemill.telemetry.tracing import tracing


def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """The answer is for an operator: the id and the state of the job, or the faults of a payload."""
    scheduled_at, now = event[TICK_SCHEDULED_AT], clock.now()
    if scheduled_at == SCHEDULED_TIME:
        # The scheduler of the emulator does not fill in the time. Schedules have a precision of one minute.
        scheduled_at = f"{now.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
    telemetry = composition.parts().telemetry()
    job_type = composition.known_job_types().get(event[TICK_TYPE])
    if TICK_PAYLOAD in event:
        return {"faults": payload_faults(job_type, event[TICK_PAYLOAD])}
    call = Call(scheduled_at=scheduled_at, requested=TICK_REQUESTED in event)
    settings = composition.parts().configuration
    wanted = submission(call, job_type, settings.current(), now=now)
    if not settings.confirmed and not may_act_unconfirmed(call, now=now):
        raise StoreUnavailableError(
            "the runtime configuration could not be read, so a pause of the schedule may be unknown; Lambda tries again"
        )
    if isinstance(wanted, Pause):
        telemetry.time_skipped(job_type, scheduled_at, wanted)
        return {}
    with tracing().invocation("tick", context), tracing().submit(context.aws_request_id) as trace:
        accepted = composition.parts().submit(wanted, tenant=SCHEDULE_TENANT, trace=trace)
        telemetry.accepted(accepted)
    telemetry.flush()
    return {"id": accepted.job.id, "state": accepted.job.state}
