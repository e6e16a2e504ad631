"""Tick: the clock says that a periodic type's time has come, and its job is submitted: one, however often it says so.

The key of the submission is the scheduled time, which is the same in every delivery of one call. What cannot be
submitted raises, so that Lambda tries again, the alarm rings, and the call is kept at last where missed ones are.
"""

from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final

from tidemill import composition
from tidemill.domain.submission import Submission
from tidemill.names import SCHEDULED_TIME, TICK_SCHEDULED_AT, TICK_TYPE
from tidemill.system import clock

#: Whose jobs the periodic ones are. No caller's tenant is like it: those are of two parts or more.
TENANT: Final = "schedule"


def handle(event: Mapping[str, Any], context: Any) -> None:
    type_, scheduled_at = event[TICK_TYPE], event[TICK_SCHEDULED_AT]
    if scheduled_at == SCHEDULED_TIME:
        # A scheduler that does not put the time in its place, as the embedded one. Schedules are of whole minutes.
        scheduled_at = f"{clock.now().astimezone(UTC):%Y-%m-%dT%H:%MZ}"
    telemetry = composition.telemetry()
    submission = Submission(type=type_, key=f"{type_} {scheduled_at}")
    telemetry.accepted(composition.submit()(submission, tenant=TENANT, trace=context.aws_request_id))
    telemetry.flush()
