"""What `explain` says of a success: what an event, a batch or a flow did, and what undoes it."""

from collections.abc import Iterator
from datetime import datetime
from shlex import quote

from tidemill.application.events.events import consumer_jobs
from tidemill.application.explain.explained_parts import ends
from tidemill.application.time_text import moment
from tidemill.domain.events.events import is_event
from tidemill.domain.job import Job


def effects(job: Job, now: datetime) -> Iterator[str]:
    """One sentence for each."""
    yield from ends(job)
    yield from _place(job)
    yield from _consumers(job)
    yield from _undo(job, now)


def _consumers(job: Job) -> Iterator[str]:
    if not is_event(job) or not job.result:
        return
    jobs = [f"{consumer} in job {job_id}" for job_id, consumer in consumer_jobs(job).items()]
    yield f"It reached {', '.join(jobs)}." if jobs else "No consumer takes it."


def _place(job: Job) -> Iterator[str]:
    if job.flow and job.flow.mark:
        command = f"tidemill flow {quote(job.flow.id)} --tenant {quote(job.tenant)}"
        yield f"The node {job.flow.node} has no job: `{command}` shows why."


def _undo(job: Job, now: datetime) -> Iterator[str]:
    if job.correction.undone:
        yield f"It was undone by job {job.correction.undone.job_id}, submitted {moment(job.correction.undone.at, now)}."
    elif job.correction.undo:
        yield f"`tidemill undo {quote(job.id)} --tenant {quote(job.tenant)}` undoes it."
