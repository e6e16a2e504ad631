"""The bodies of queue messages: what they say of a job. The document of the job is authoritative."""

from dataclasses import dataclass, field
from datetime import datetime

from msgspec import Struct

from tidemill.domain.job import Job
from tidemill.domain.states import State


class FirstRun(Struct, frozen=True, kw_only=True):
    """What the message of a job says that has not begun. A claim compares it with the document, which decides."""

    type: str
    due: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The body of a queue message: identifies a job, and its generation identifies a late message."""

    tenant: str
    job_id: str
    generation: int
    trace: str
    #: With it, a worker may claim the job together with others. None in all other messages.
    first_run: FirstRun | None = field(default=None, compare=False)


class DeadLetter(Struct, frozen=True, kw_only=True):
    """The body of a dead-letter message for a dead job. For operators to read; the job document is authoritative."""

    reference: Reference
    type: str
    death: str
    error_class: str
    attempts: int


def reference_to(job: Job) -> Reference:
    """A message for the job's current generation."""
    return Reference(
        tenant=job.tenant, job_id=job.id, generation=job.generation, trace=job.trace, first_run=_first_run(job)
    )


def _first_run(job: Job) -> FirstRun | None:
    """None for a job that was written since its submission, may be before its run, or has to keep an order."""
    untouched = job.generation == 1 and job.attempt == 0 and not job.history and job.nudges.last_at is None
    if job.state is not State.QUEUED or job.due is None or not untouched or job.burst or job.group.key:
        return None
    return FirstRun(type=job.type, due=job.due)


def reference_of(body: Reference | DeadLetter) -> Reference:
    """The reference in a message of either kind."""
    return body.reference if isinstance(body, DeadLetter) else body
