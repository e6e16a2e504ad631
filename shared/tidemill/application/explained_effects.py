"""What `explain` says of a success: whom an event reached, what a batch counted, what undoes or makes up for it."""

import json
from collections.abc import Iterator
from datetime import datetime
from shlex import quote

from tidemill.application.job_ids import follow_up_id
from tidemill.application.time_text import moment
from tidemill.domain.job import Job
from tidemill.names import BATCH_TYPE, EVENT_TYPE


def effects(job: Job, now: datetime) -> Iterator[str]:
    """One sentence for each."""
    yield from _members(job)
    yield from _consumers(job)
    yield from _undo(job, now)
    yield from _skipped(job)


def _consumers(job: Job) -> Iterator[str]:
    if job.type != EVENT_TYPE or not job.result:
        return
    consumers = json.loads(job.result)["consumers"]
    jobs = [f"{consumer} in job {follow_up_id(job, index)}" for index, consumer in enumerate(consumers)]
    yield f"It reached {', '.join(jobs)}." if jobs else "No consumer takes it."


def _members(job: Job) -> Iterator[str]:
    if job.type == BATCH_TYPE and job.result:
        counts: dict[str, int] = json.loads(job.result)
        shown = ", ".join(f"{count} {state}" for state, count in counts.items())
        yield f"Its jobs: {shown}." if shown else "It has no jobs."


def _undo(job: Job, now: datetime) -> Iterator[str]:
    if job.undone:
        yield f"It was undone by job {job.undone.job_id}, submitted {moment(job.undone.at, now)}."
    elif job.undo:
        yield f"`tidemill undo {quote(job.id)}` undoes it."


def _skipped(job: Job) -> Iterator[str]:
    by = {entry.name: entry.job_id for entry in job.backfilled}
    for mark in job.skipped:
        if mark.name in by:
            yield f"It skipped {mark.name}, and job {by[mark.name]} makes up for that."
        else:
            command = f"tidemill backfill {quote(job.type)} --skipped {quote(mark.name)}"
            yield f"It skipped {mark.name}; `{command}` makes up for that."
