"""The history of a job as sentences in order of time, from its document alone. Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import zip_longest
from typing import Final

from tidemill.application.time_text import span
from tidemill.domain.history import HELD, Transition, Why
from tidemill.domain.job import CRASHED, DEADLINE_PASSED, NO_ATTEMPT_LEFT, TOO_MANY_HOPS, AttemptError, Job, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.signals import CAME, WAITS
from tidemill.domain.waiting.waiting import Cause, Wait

#: One moment and what happened then.
Event = tuple[datetime, str]
#: The causes that need no further field.
_PLAIN: Final[Mapping[str, str]] = {
    Why.SUCCEEDED: "{run} succeeded",
    Why.EXPIRED: "{run} did not begin: the job had become too old to be of use, and expired",
    Why.SNOOZED: "its handler asked for a later run: snoozed",
    Why.CONTINUED: "its handler asked for a later run: continued",
    Why.CONFLICT: "{run} was given back, because other transactions conflicted with it",
    Why.UNANSWERED: "the claim of {run} was given back, because its worker got no answer",
    Why.RESTORED: "{run} was given back, because the table was restored to a moment at which it ran",
    Why.MOVED: "a later submission moved it, and {burst.moves} have so far",
    Why.REPLACED: "a later submission replaced its payload, and {burst.replacements} have so far",
    Why.DUE: "its time was near, so wake put it on its lane",
    Why.TURN: "it became the head of its group",
    Why.ROOM: "it was released from its line",
    Why.RESUMED: "it was released from its pause",
    Why.BREAKER: "its breaker released it",
    Why.WAITED: "its wait for a signal neared its end, so wake put it on its lane",
    Why.LOOK: "it was asked to look at its nodes",
    Why.NUDGED: "its message was lost or late, so it was sent again",
    Why.RUN_LOST: "the lease of {run} was over, so its message was sent again",
}
#: Why a claimed job was given back, for the causes of a hold. A breaker may also open because of the run itself.
_HELD: Final[Mapping[str, str]] = {
    HoldCause.LIMIT: "its limit left no room",
    HoldCause.PAUSE: "an operator had paused it",
    HoldCause.SUSPECT: "it may have killed the worker of its last run, and is to run alone",
    HoldCause.STRAY: "a handler in its worker ran beyond its time, or spoiled its process",
    HoldCause.OUTAGE: "the store did not respond",
    HoldCause.TYPE: "its worker could not load its type",
    HoldCause.BREAKER: "the breaker of its downstream was open",
    HoldCause.VERSION: "its worker did not know its type, or refused its payload",
    HoldCause.UNDO: "the job that it supersedes still ran, or was not undone",
    HoldCause.CALL: "a call that it shared failed, and it is to run alone",
}
#: Final errors of jobs that died right after a claim, instead of a run.
_INSTEAD_OF_A_RUN: Final = frozenset({CRASHED, DEADLINE_PASSED, NO_ATTEMPT_LEFT, TOO_MANY_HOPS})
_REQUEST: Final = "a cancel was requested while it ran"


def story(job: Job) -> list[Event]:
    """Oldest first: the transitions that the document keeps, and what its other fields add to them."""
    entries = job.known_history
    told = [(entry.at, _told(entry, following, job)) for entry, following in zip_longest(entries, entries[1:])]
    return sorted([*told, *_untold(job)], key=lambda event: event[0])


def _told(entry: Transition, following: Transition | None, job: Job) -> str:
    run = "a run" if entry.attempt is None else f"attempt {entry.attempt}"
    if entry.cause in _PLAIN:
        return _PLAIN[entry.cause].format(run=run, burst=job.burst)
    match entry.cause:
        case Why.ACCEPTED:
            text = _submitted(job)
        case Why.CLAIMED:
            version = f", on version {entry.version}" if entry.version else ""
            began = "a worker claimed it" if following and _no_run(following, job) else f"{run} began"
            text = f"{began}{_wait(job, entry.at)}{version}"
        case Why.REDRIVEN | Why.EDITED:
            found = next((redrive for redrive in job.redrives if redrive.at == entry.at), None)
            text = _redriven(found) if found else "redriven"
        case Why.CANCELLED:
            text = f"cancelled{_by(job.cancel.request)}"
        case Why.CANCEL_REQUESTED:
            # A redrive clears the author of an earlier one.
            text = _REQUEST + (_by(job.cancel.request) if entry.at == job.cancel.requested_at else "")
        case Why.UNDONE if job.correction.undone:
            why = f", because: {job.correction.undone.reason}" if job.correction.undone.reason else ""
            text = f"undone by job {job.correction.undone.job_id}, as {job.correction.undone.by} asked{why}"
        case waits if waits.startswith(WAITS):
            text = f"{run} ended, to wait for {waits.removeprefix(WAITS)}"
        case came if came.startswith(CAME) and entry.attempt is None:
            text = f"the {came} came, for which it waited"
        case _:
            text = _ended(entry, job, run)
    return text


def _no_run(end: Transition, job: Job) -> bool:
    """Whether this transition, the next after a claim, came instead of a run."""
    error = _error_of(end, job) if end.cause != Why.CLAIMED else None
    return end.cause == Why.EXPIRED or (error is not None and _is_instead_of_a_run(error))


def _is_instead_of_a_run(error: AttemptError) -> bool:
    return not error.retryable and error.error_class in _INSTEAD_OF_A_RUN


def _error_of(entry: Transition, job: Job) -> AttemptError | None:
    return next((error for error in job.errors if error.at == entry.at), None)


def _ended(entry: Transition, job: Job, run: str) -> str:
    """With an error, the cause of a hold, or a reason of death."""
    error = _error_of(entry, job)
    if error:
        return _failed(error) + (f"; it died: {entry.cause}" if entry.state == State.DEAD else "")
    if entry.state == State.DEAD:
        return f"it died: {entry.cause}"
    if entry.state == State.PARKED and job.wait and job.wait.since == entry.at:
        return f"it was parked, and waits for {_awaited(job.wait)}"
    if entry.cause == Why.PAUSED:
        return "it was parked, because an operator had paused it"
    if entry.cause.startswith(HELD):
        cause = entry.cause.removeprefix(HELD)
        return f"{run} was given back, because {_HELD[cause]}" if cause in _HELD else f"{run} was given back: {cause}"
    return f"{run} ended: {entry.state}, {entry.cause}"


def _awaited(wait: Wait) -> str:
    return f"{'the end of ' * (wait.cause is Cause.PAUSE)}{'the' if wait.line.capped else 'its'} {wait.line}"


def _untold(job: Job) -> Iterator[Event]:
    """What the transitions do not say: older errors, lost runs, checkpoints; and all of a document without history."""
    claims = {entry.at for entry in job.history if entry.cause == Why.CLAIMED}
    others = {entry.at for entry in job.history if entry.cause != Why.CLAIMED}
    older = [error for error in job.errors if error.at not in others]
    yield from ((error.at, _failed(error)) for error in (*older, *job.lost))
    for redrive in job.redrives:
        if redrive.at not in others:
            yield redrive.at, _redriven(redrive)
    if job.lease.claimed_at and job.lease.claimed_at not in claims:
        run = f"attempt {job.attempt}" if job.state is State.RUNNING else "the last run"
        yield job.lease.claimed_at, f"{run} began{_wait(job, job.lease.claimed_at)}"
    if job.progress.checkpoint_at:
        done, total = job.progress.done, job.progress.total
        progress = "" if done is None else f", {done} done" if total is None else f", {done} of {total} done"
        yield job.progress.checkpoint_at, f"the handler saved a checkpoint{progress}"
    for step in job.steps.recorded:
        yield step.at, f"attempt {step.attempt} recorded the step {step.name}"
    if job.wait and job.wait.since not in others:
        what = "was parked, and waits" if job.state is State.PARKED else "had to wait"
        yield job.wait.since, f"it {what} for {_awaited(job.wait)}"
    if job.nudges.last_at and job.nudges.last_at not in others:
        yield job.nudges.last_at, _PLAIN[Why.NUDGED]
    if job.finished_at and job.finished_at not in others:
        yield job.finished_at, f"it died: {job.death}" if job.state is State.DEAD else str(job.state)


def _submitted(job: Job) -> str:
    parts = [f"submitted to the lane {job.lane}"]
    if job.burst:
        parts.append(f"debounced, for {span(job.burst.until - job.created_at)} at most")
    elif job.run_at:
        parts.append(f"to run {span(job.run_at - job.created_at)} later")
    if job.group.key:
        parts.append(f"as number {job.group.sequence} of the group {job.group.key}")
    if job.batch:
        parts.append(f"into the batch {job.batch}")
    if job.flow:
        parts.append(f"as the node {job.flow.node} of the flow {job.flow.id}")
    if job.parent:
        parts.append(f"by the end of job {job.parent}")
    if job.correction.undoes:
        parts.append(f"to undo job {job.correction.undoes}")
    if job.correction.supersedes:
        parts.append(f"to supersede job {job.correction.supersedes}")
    return ", ".join(parts)


def _wait(job: Job, began: datetime) -> str:
    """The document says it of the last run only."""
    if job.lease.ready_at is None or job.lease.claimed_at != began:
        return ""
    return f" {span(began - job.lease.ready_at)} after it was ready"


def _failed(error: AttemptError) -> str:
    if _is_instead_of_a_run(error):
        return f"no further run began: {error.error_class}: {error.message}"
    kind = "" if error.retryable else ", for good"
    again = f"; the next may begin after {span(error.next_due - error.at)}" if error.next_due else ""
    return f"attempt {error.attempt} failed{kind}: {error.error_class}: {error.message}{again}"


def _redriven(redrive: Redrive) -> str:
    why = f", because: {redrive.reason}" if redrive.reason else ""
    other = " with another payload" if redrive.edited else ""
    return f"redriven{other} by {redrive.by}{why}" + (f", after it had died: {redrive.death}" if redrive.death else "")


def _by(cancel: CancelRequest | None) -> str:
    if cancel is None:
        return ""
    return f" by {cancel.by}" + (f", because: {cancel.reason}" if cancel.reason else "")
