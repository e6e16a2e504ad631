"""What `explain` says of a batch or a flow: what it waits for, and how its jobs or nodes have ended."""

import json
from collections.abc import Iterator
from datetime import datetime
from shlex import quote

from tidemill.application.time_text import moment
from tidemill.domain.batches.batches import closed_at, is_batch
from tidemill.domain.batches.composite_cancels import cancelled_at
from tidemill.domain.flows.flows import is_flow
from tidemill.domain.job import Job


def look_ahead(job: Job, now: datetime) -> str | None:
    """Why a batch or flow whose wait no caller needs to end does not run now. None of another job."""
    if is_batch(job):
        return f"It looks at its jobs again {moment(job.due, now)}, or as soon as it is closed."
    if is_flow(job):
        return f"It looks at its nodes again {moment(job.due, now)}, or as soon as the last of them have ended."
    return None


def so_far(job: Job, now: datetime) -> Iterator[str]:
    """What a live batch or flow waits for."""
    if is_batch(job):
        yield from _members_so_far(job, now)
    if is_flow(job):
        yield from _nodes_so_far(job, now)


def _members_so_far(job: Job, now: datetime) -> Iterator[str]:
    """Its looks are the only ones to count its jobs, so the figures are those of the last."""
    closed = closed_at(job, now=now)
    close = f"its owner closes it with `tidemill batch {quote(job.id)} --close`"
    yield f"The batch was closed {moment(closed, now)}." if closed else f"The batch is open for further jobs; {close}."
    waited = json.loads(job.progress.checkpoint) if job.progress.checkpoint else {}
    counts: dict[str, int] = waited.get("counts", {})
    if counts:
        listed = f"`tidemill list --batch {quote(job.id)} --tenant {quote(job.tenant)}` lists them"
        yield f"Its jobs at its last look: {_shown(counts)}. {listed}."


def _nodes_so_far(job: Job, now: datetime) -> Iterator[str]:
    if cancelled := cancelled_at(job):
        yield f"The flow was cancelled {moment(cancelled, now)}, and waits for its last nodes to end."
    ended = ""
    if job.progress.total:
        ended = f"{job.progress.done} of its {job.progress.total} nodes had ended at its last look. "
    command = f"tidemill flow {quote(job.id)} --tenant {quote(job.tenant)}"
    yield f"{ended}`{command}` shows each node, and the parents for which it waits."


def ends(job: Job) -> Iterator[str]:
    """How the jobs of an ended batch, or the nodes of an ended flow, have ended."""
    if is_batch(job) and job.result:
        counts: dict[str, int] = json.loads(job.result)
        yield f"Its jobs: {_shown(counts)}." if counts else "It has no jobs."
    if is_flow(job) and job.result:
        yield f"Its nodes: {_shown(json.loads(job.result))}."


def _shown(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items())
