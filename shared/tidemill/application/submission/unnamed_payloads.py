"""The payload that was stored apart for a job which another call wrote first."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tidemill.application.ports import Payloads, WriterPayloads
from tidemill.domain.errors import TidemillError, TransactionConflictError
from tidemill.domain.job import Job


def names_payload(written: Job | None, payload_at: str | None) -> bool:
    """Whether the document `written` names this payload: it may be of another job under the same key."""
    return written is not None and written.payload.location == payload_at


def delete_unnamed(stored: Job | None, written: Job | None, payloads: Payloads) -> None:
    """Delete the payload of `stored`, unless `written`, the document of the job now, names it after all.

    A write may be refused although an earlier send of it was applied. If the payload can neither be deleted now nor
    owed, reconcile deletes an item, and the lifecycle of the bucket a file.
    """
    if stored is None or names_payload(written, stored.payload.location):
        return
    with suppress(TidemillError):
        payloads.delete(stored.tenant, stored.id, stored.payload.location)


@contextmanager
def deleted_on_conflict(stored: Job, payloads: WriterPayloads) -> Iterator[None]:
    """Around the write of `stored`: delete its payload if the write meets a transaction, unless it was applied.

    The first send may have been, and the SDK's retry conflict with the settle of the job's first run. Or the network
    holds it up, and it is applied later. So its document is looked at in a minute.
    """
    try:
        yield
    except TransactionConflictError:
        payloads.delete_later(stored)
        raise
