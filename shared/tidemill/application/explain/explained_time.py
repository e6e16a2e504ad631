"""Why a job runs at a time ahead and not at once. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tidemill.application.explain.explanation import Reason
from tidemill.application.time_text import moment
from tidemill.domain.debounce.debounce_record import DebounceWindow
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import Cause

_HOLDS: Final[Mapping[HoldCause | None, str]] = {
    HoldCause.PAUSE: "an operator had paused it",
    HoldCause.SUSPECT: "it may have crashed its last worker, so it must run alone, and no worker had the time for that",
    HoldCause.STRAY: "a handler in its process ran on beyond its time, and the process was about to end",
    HoldCause.OUTAGE: "the store did not respond to its worker",
    HoldCause.TYPE: "its worker could not load its type, because a job file was broken",
    HoldCause.BREAKER: "the breaker of its downstream was open",
    HoldCause.UNDO: "the job that it supersedes still ran, or its undo had not succeeded",
    HoldCause.CALL: "a call of its batch handler failed for several jobs, so it must run alone",
    HoldCause.VERSION: "its worker does not know its type, or refuses its payload; during a deployment this passes",
    None: "another version of the code held it",
}
#: Why a released job has a time, by the cause of its wait. The braces stand for the key of its line.
_RELEASED: Final[Mapping[Cause, tuple[Reason, str]]] = {
    Cause.PAUSE: (Reason.RESUMED, "The pause {} has ended"),
    Cause.TYPE: (Reason.LOADED, "Its type {} is loaded again"),
    Cause.BREAKER: (Reason.BREAKER_RELEASED, "The breaker {} released it"),
}


def reason_of_time(job: Job, when: str, now: datetime) -> tuple[Reason, str]:
    """Explain the time of a job that is queued, retrying or scheduled. `when` is that time as text."""
    return _given_time(job, when, now) or _usual_time(job, when)


def _given_time(job: Job, when: str, now: datetime) -> tuple[Reason, str] | None:
    """Explain the time of a job that was debounced, released from a line or held back. None for another."""
    if job.burst and job.due == job.run_at:
        # The time is that of its submissions, also if it was parked in between.
        return Reason.DELAYED, debounced(job.burst, when, now)
    if job.state is State.QUEUED and job.wait and (released := _RELEASED.get(job.wait.cause)):
        reason, begins = released
        return reason, f"{begins.format(job.wait.key)}, and it starts {when}."
    if job.holds.count and job.holds.cause is HoldCause.LIMIT:
        limit = job.wait.line if job.wait else "limit of its type"
        return Reason.TURN, f"The {limit} lets it start {when}."
    if job.holds.count:
        return (
            Reason.HELD,
            f"It was held back until {when}, {times(job.holds.count)} so far: {_HOLDS[job.holds.cause]}.",
        )
    return None


def _usual_time(job: Job, when: str) -> tuple[Reason, str]:
    """From its redrive, its last run or its submission."""
    if job.redrives and job.redrives[-1].at == job.due:
        return Reason.REDRIVEN, f"It was redriven, to run {when}."
    if job.errors and job.errors[-1].next_due == job.due:
        last = job.errors[-1]
        return Reason.BACKOFF, f"Attempt {last.attempt} failed with {last.error_class}. The next one may begin {when}."
    if job.state is State.RETRYING:
        why = "other transactions conflicted with it" if job.lease.releases else "the store did not answer its worker"
        return Reason.RELEASED, f"Its last run gave the claim back, because {why}. It runs again {when}."
    if job.lease.claimed_at and job.hops:
        return Reason.HANDLER_DELAY, f"Its handler asked to run again {when} (a snooze or a continuation)."
    return Reason.DELAYED, f"It was submitted to run {when}."


def times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def debounced(burst: DebounceWindow, when: str, now: datetime) -> str:
    same = "the same payload" if burst.key is None else f"the debounce key {burst.key}"
    sentences = [
        f"It is debounced, and runs {when}.",
        f"A submission with {same} moves it on, until {moment(burst.until, now)} at the latest.",
    ]
    if burst.moves:
        sentences.append(f"Submissions have moved it: {burst.moves}, the first {moment(burst.first_moved_at, now)}.")
    if burst.replacements:
        first = moment(burst.first_replaced_at, now)
        sentences.append(f"Submissions have replaced its payload: {burst.replacements}, the first {first}.")
    return " ".join(sentences)
