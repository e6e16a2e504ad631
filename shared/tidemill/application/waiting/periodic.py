"""Periodic jobs: the submission that a call of the scheduler makes, or why it makes none. Pure."""

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from tidemill.application.job_types import JobType
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration
from tidemill.domain.submission.submission import DerivedKey
from tidemill.domain.waiting.pauses import CATCH_UP_TAG, Pause

#: Lambda tries a failed call again after one minute, and once more two minutes later.
#: https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
_LAST_TRY_AFTER: Final = timedelta(minutes=2, seconds=30)
#: The tag of a job that an operator asked for. It says nothing of the times of the schedule.
REQUESTED_TAG: Final = "requested"


class Call(Struct, frozen=True, kw_only=True):
    """One call for a periodic type. It may arrive more than once, with the same time."""

    #: The time as the scheduler or the command of an operator writes it.
    scheduled_at: str
    #: An operator asked for this run. It happens although the schedule is disabled.
    requested: bool = False


def submission(
    call: Call, job_type: JobType, configuration: RuntimeConfiguration, *, now: datetime
) -> DerivedKey | Pause:
    """The job to submit; or the pause because of which the schedule skips this time.

    The key makes one job of all calls that mean the same: a scheduled time, a second of an operator, or all times
    that fall into one pause, or into several without a gap. Whether a time does depends on that time alone: a call
    that is delivered once before and once in a pause, or once in a pause and once after it, gets the same key.
    """
    name = job_type.name
    if call.requested:
        return DerivedKey(type=name, key=f"{name} requested {call.scheduled_at}", tags=[REQUESTED_TAG])
    scheduled = _time(call.scheduled_at) or now
    pause = configuration.pause_of_schedule(name, job_type.lane, scheduled=scheduled)
    if pause is None:
        return DerivedKey(type=name, key=f"{name} {call.scheduled_at}")
    if not job_type.catch_up:
        return pause
    since = configuration.schedule_paused_since(name, job_type.lane, scheduled=scheduled)
    # Publish parks it until the end of the pause, if that is still to come.
    return DerivedKey(type=name, key=f"{name} catch-up {since.isoformat()}", tags=[CATCH_UP_TAG])


def may_act_unconfirmed(call: Call, *, now: datetime) -> bool:
    """Whether the call is answered although the configuration could not be read.

    A pause may have begun or ended since, and the scheduled time would get a second job. So the first tries wait for
    a read. The last one acts, because what cannot be read for minutes must not stop the periodic jobs.
    """
    scheduled = _time(call.scheduled_at)
    return call.requested or scheduled is None or now - scheduled >= _LAST_TRY_AFTER


def _time(text: str) -> datetime | None:
    """None if the scheduler does not write a time with a zone, as it should."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None
