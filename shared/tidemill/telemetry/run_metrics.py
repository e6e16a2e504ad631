"""The metrics of one end of an attempt, from its report."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.domain.attempt.error_kinds import ErrorKind, kind_of
from tidemill.domain.dispatch.claim_verdict import ClaimVerdict
from tidemill.domain.job import DeathReason, Job
from tidemill.metrics import Metric
from tidemill.names import CANARY_TYPE

_OF_ENDING: Final[Mapping[Ending, Metric]] = {
    Ending.SUCCEEDED: Metric.SUCCEEDED,
    Ending.RETRYING: Metric.RETRIED,
    Ending.DEAD: Metric.DEAD,
    Ending.CANCELLED: Metric.CANCELLED,
    Ending.EXPIRED: Metric.EXPIRED,
    Ending.SNOOZED: Metric.SNOOZED,
    Ending.CONTINUED: Metric.CONTINUED,
    # The handler asked for a later run.
    Ending.AWAITING: Metric.SNOOZED,
    Ending.HELD: Metric.HELD,
    Ending.PARKED: Metric.PARKED,
    Ending.RELEASED: Metric.RELEASED,
    Ending.FENCED: Metric.FENCED,
    Ending.REFUSED: Metric.REFUSED,
    Ending.UNAVAILABLE: Metric.UNAVAILABLE,
    Ending.MALFORMED: Metric.DROPPED,
}
_OF_ERROR: Final[Mapping[ErrorKind, Metric]] = {
    ErrorKind.TRANSIENT: Metric.TRANSIENT_ERRORS,
    ErrorKind.PERMANENT: Metric.PERMANENT_ERRORS,
    ErrorKind.TIMEOUT: Metric.TIMEOUT_ERRORS,
    ErrorKind.CRASH: Metric.CRASH_ERRORS,
    ErrorKind.OTHER: Metric.OTHER_ERRORS,
}
#: Endings of attempts whose handler ran.
_ATTEMPTED: Final = frozenset(
    {
        *(Ending.SUCCEEDED, Ending.RETRYING, Ending.DEAD, Ending.CANCELLED),
        *(Ending.SNOOZED, Ending.CONTINUED, Ending.AWAITING),
    }
)
#: Deaths that the handler or the caller asked for.
_INTENDED_DEATHS: Final = frozenset({DeathReason.GAVE_UP, DeathReason.DEADLINE})
#: Verdicts on a message whose job another run has, or had.
_DUPLICATE: Final = frozenset({ClaimVerdict.DUPLICATE, ClaimVerdict.STALE, ClaimVerdict.LEASED})


def run_metrics(report: Report) -> dict[Metric, float]:
    """Counts, and times in milliseconds. A canary that succeeds, or came too late, counts as no job of the lane."""
    if (job := report.job) and job.type == CANARY_TYPE and report.settled_at:
        if report.ending is Ending.SUCCEEDED:
            return {Metric.CANARY_LATENCY: _milliseconds(report.settled_at - job.created_at)}
        if report.ending is Ending.CANCELLED:
            return {}
    counts: Counter[Metric] = Counter(_OF_ERROR[kind_of(error)] for error in report.errors)
    if metric := _OF_ENDING.get(report.ending):
        counts[metric] += 1
    if report.ending is Ending.REFUSED and report.verdict in _DUPLICATE:
        counts[Metric.DUPLICATES] += 1
    if report.ending is Ending.DEAD and report.death not in _INTENDED_DEATHS:
        counts[Metric.FAILED] += 1
    if report.put_back_until:
        counts[Metric.PUT_BACK] += 1
    times = _times(report, report.job) if report.job else {}
    return {**counts, **{metric: _milliseconds(time) for metric, time in times.items()}, **_attempts(report)}


def _attempts(report: Report) -> dict[Metric, float]:
    return {Metric.ATTEMPTS: report.job.attempt} if report.job and report.ending is Ending.SUCCEEDED else {}


def _times(report: Report, job: Job) -> dict[Metric, timedelta]:
    """`job` is as claimed."""
    settled_at, times = report.settled_at, dict[Metric, timedelta]()
    if settled_at is None or job.lease.claimed_at is None or report.ending not in _ATTEMPTED:
        return times
    times[Metric.ATTEMPT_DURATION] = settled_at - job.lease.claimed_at if report.took is None else report.took
    if job.lease.ready_at:
        times[Metric.START_LATENCY] = job.lease.claimed_at - job.lease.ready_at
    if report.ending is Ending.RETRYING and (next_due := report.errors[-1].next_due):
        times[Metric.RETRY_INTERVAL] = next_due - settled_at
    if report.ending is Ending.SUCCEEDED:
        times[Metric.JOB_LATENCY] = settled_at - max(job.created_at, job.run_at or job.created_at)
        if failures := (*job.errors, *report.errors):
            times[Metric.TIME_TO_RECOVER] = settled_at - failures[0].at
    return times


def _milliseconds(time: timedelta) -> int:
    """Zero if one of the clocks was set back between two times of the document."""
    return max(round(time.total_seconds() * 1000), 0)
