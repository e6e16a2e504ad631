"""What `explain` says of a success: what an event, a batch or a flow did, what undoes or makes up for it."""

import json
from collections.abc import Iterator
from datetime import datetime
from shlex import quote

from tidemill.application.events import consumer_jobs
from tidemill.application.time_text import moment
from tidemill.domain.batches import closed_at, is_batch
from tidemill.domain.events import is_event
from tidemill.domain.flows import is_flow
from tidemill.domain.job import Job


def effects(job: Job, now: datetime) -> Iterator[str]:
    """One sentence for each."""
    yield from _members(job)
    yield from _nodes(job)
    yield from _consumers(job)
    yield from _undo(job, now)
    yield from _skipped(job)


def _consumers(job: Job) -> Iterator[str]:
    if not is_event(job) or not job.result:
        return
    jobs = [f"{consumer} in job {job_id}" for job_id, consumer in consumer_jobs(job).items()]
    yield f"It reached {', '.join(jobs)}." if jobs else "No consumer takes it."


def batch_so_far(job: Job, now: datetime) -> Iterator[str]:
    """What a batch waits for. Its looks are the only ones to count its jobs, so the figures are those of the last."""
    if not is_batch(job):
        return
    closed = closed_at(job, now=now)
    close = f"`tidemill batch {quote(job.id)} --close` closes it"
    yield f"The batch was closed {moment(closed, now)}." if closed else f"The batch is open for further jobs; {close}."
    waited = json.loads(job.checkpoint) if job.checkpoint else {}
    counts: dict[str, int] = waited.get("counts", {})
    if counts:
        shown = ", ".join(f"{count} {state}" for state, count in counts.items())
        yield f"Its jobs at its last look: {shown}. `tidemill list --batch {quote(job.id)}` lists them."


def _members(job: Job) -> Iterator[str]:
    if is_batch(job) and job.result:
        counts: dict[str, int] = json.loads(job.result)
        shown = ", ".join(f"{count} {state}" for state, count in counts.items())
        yield f"Its jobs: {shown}." if shown else "It has no jobs."


def _nodes(job: Job) -> Iterator[str]:
    if job.flow and job.flow.mark:
        yield f"The node {job.flow.node} has no job: `tidemill flow {quote(job.flow.id)}` shows why."
    if is_flow(job) and job.result:
        counts: dict[str, int] = json.loads(job.result)
        yield f"Its nodes: {', '.join(f'{count} {what}' for what, count in counts.items())}."


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
