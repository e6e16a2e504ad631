"""The history of a job as sentences in order of time, from its document alone. Pure."""

from collections.abc import Iterator
from datetime import datetime

from tidemill.application.time_text import span
from tidemill.domain.job import Job
from tidemill.domain.states import State

#: One moment and what happened then.
Event = tuple[datetime, str]


def story(job: Job) -> list[Event]:
    """Oldest first. The document keeps the last ten errors, and of other events only the last one of each kind."""
    return sorted(_events(job), key=lambda event: event[0])


def _events(job: Job) -> Iterator[Event]:
    yield job.created_at, _submitted(job)
    for error in job.known_errors:
        kind = "" if error.retryable else ", for good"
        again = f"; next attempt after {span(error.next_due - error.at)}" if error.next_due else ""
        yield error.at, f"attempt {error.attempt} failed{kind}: {error.error_class}: {error.message}{again}"
    for redrive in job.redrives:
        why = f", after it had died: {redrive.death}" if redrive.death else ""
        yield redrive.at, f"redriven by {redrive.by}{why}"
    if job.claimed_at:
        waited = f", {span(job.claimed_at - job.ready_at)} after it was ready" if job.ready_at else ""
        run = f"attempt {job.attempt}" if job.state is State.RUNNING else "the last run"
        yield job.claimed_at, f"{run} began{waited}"
    if job.checkpoint_at:
        done, total = job.progress_done, job.progress_total
        progress = "" if done is None else f", {done} done" if total is None else f", {done} of {total} done"
        yield job.checkpoint_at, f"the handler saved a checkpoint{progress}"
    if job.wait:
        what = "was parked, and waits" if job.state is State.PARKED else "had to wait"
        yield job.wait.since, f"it {what} for its {job.wait.cause} {job.wait.key}"
    if job.nudged_at:
        yield job.nudged_at, "reconcile sent its message again"
    if job.cancel_requested_at:
        yield job.cancel_requested_at, "a cancel was requested while it ran"
    if job.finished_at:
        yield job.finished_at, f"died: {job.death}" if job.state is State.DEAD else str(job.state)


def _submitted(job: Job) -> str:
    parts = [f"submitted to the lane {job.lane}"]
    if job.run_at:
        parts.append(f"to run {span(job.run_at - job.created_at)} later")
    if job.group:
        parts.append(f"as number {job.sequence} of the group {job.group}")
    if job.parent:
        parts.append(f"by the success of job {job.parent}")
    return ", ".join(parts)
