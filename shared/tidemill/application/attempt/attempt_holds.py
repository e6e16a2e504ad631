"""The outcomes that several gates have for a job that cannot run now: it is parked in a line, or held for a while."""

from datetime import datetime, timedelta
from typing import Final

from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.domain.attempt.outcomes import Failed, Outcome, Parked
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import DeathReason
from tidemill.domain.limits.limits import Rate
from tidemill.domain.records import replace
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.pauses import DRAIN_PER_SECOND
from tidemill.domain.waiting.waiting import Line, Wait

#: Submit has checked the type and the payload of each job. If this worker does not know the type, or its model refuses
#: the payload, then one of the two is of another version, as in every deployment. The job is held for a random time
#: below a ceiling that doubles with each hold up to this. After so many holds, an hour and a half on average, it dies:
#: no deployment takes that long.
LONGEST_VERSION_HOLD_SECONDS: Final = 900.0
MOST_HOLDS_OF_A_VERSION: Final = 20
#: When the store does not respond to a claimed job, it is held for a random time below the first number. The ceiling
#: doubles with each hold up to the second, so that the jobs of a throttled limit do not keep it throttled.
FIRST_OUTAGE_HOLD_SECONDS: Final = 60.0
LONGEST_OUTAGE_HOLD_SECONDS: Final = 900.0
#: After so many consecutive holds the job fails: an error that occurs every time is not an outage.
MOST_HOLDS_OF_AN_OUTAGE: Final = 20
#: How fast the jobs of a type start once it is loaded again: as after a pause. The line of a breaker has its own rate.
RATE_OF_A_LINE: Final = Rate(count=DRAIN_PER_SECOND, period=timedelta(seconds=1))


def parked(line: Line, now: datetime) -> Parked:
    return Parked(Wait(cause=line.cause, key=line.key, since=now))


def parked_in_listed_line(run: ClaimedRun, line: Line, rate: Rate = RATE_OF_A_LINE) -> Parked:
    now = run.context.clock()
    # Before the park, so that wake knows the line even if this worker dies.
    run.context.limits.list_line(line, rate, job=(run.job.tenant, run.job.id), now=now)
    return parked(line, now)


def left_to_another_version(run: ClaimedRun, refusal: TidemillError) -> Outcome:
    """Held for a worker of another version, without using up an attempt. Dead after `MOST_HOLDS_OF_A_VERSION`."""
    if (holds := run.job.held_by(HoldCause.VERSION)) >= MOST_HOLDS_OF_A_VERSION:
        return replace(Failed.because(refusal), death=DeathReason.PERMANENT)
    held = run.context.held_below(min(2.0 ** (holds + 1), LONGEST_VERSION_HOLD_SECONDS), HoldCause.VERSION)
    return replace(held, error=error_text(refusal))


def held_for_outage(run: ClaimedRun) -> Outcome | None:
    """An outage is not the job's failure, nor is a transaction of others. None after `MOST_HOLDS_OF_AN_OUTAGE`."""
    if (holds := run.job.held_by(HoldCause.OUTAGE)) >= MOST_HOLDS_OF_AN_OUTAGE:
        return None
    ceiling_seconds = min(FIRST_OUTAGE_HOLD_SECONDS * 2.0**holds, LONGEST_OUTAGE_HOLD_SECONDS)
    return run.context.held_below(ceiling_seconds, HoldCause.OUTAGE)
