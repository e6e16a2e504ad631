"""Publish deletes the payload of a job that was deleted, or whose payload another one has replaced."""

from collections.abc import Iterator, Sequence
from functools import partial

from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.dispatch.reactions import PublishStep, Step
from tidemill.application.ports import Payloads
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.job import Job


class PayloadReaction:
    """`Reaction`: one step for each payload that is stored outside its document, and that no document names now."""

    def __init__(self, payloads: Payloads) -> None:
        self._payloads = payloads

    def __call__(self, changes: Sequence[Change]) -> Iterator[Step]:
        for change in changes:
            if job := _deleted(change):
                work = Work(kind=Kind.DELETE_PAYLOAD, tenant=job.tenant, name=job.id, payload_at=job.payload.location)
                delete = partial(self._payloads.delete, job.tenant, job.id, job.payload.location)
                yield Step(change.sequence, PublishStep.DELETE, work, delete)


def _deleted(change: Change) -> Job | None:
    """Return the job before the change, if it names a payload outside its document that it no longer names after it.

    A new job may replace an expired document before DynamoDB deletes it. The new job has another payload.
    """
    before, after = change.before, change.after
    kept = before and after and after.payload.location == before.payload.location
    return before if before and before.payload.location and not kept else None
