"""The payload that was stored apart for a job which another call wrote first."""

from contextlib import suppress

from tidemill.application.ports import Payloads
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job


def delete_unnamed(stored: Job | None, written: Job | None, payloads: Payloads) -> None:
    """Delete the payload of `stored`, unless `written`, the document of the job now, names it after all.

    A write may be refused although an earlier send of it was applied. If the payload can neither be deleted now nor
    owed, reconcile deletes an item, and the lifecycle of the bucket a file.
    """
    if stored is None or (written is not None and written.payload_at == stored.payload_at):
        return
    with suppress(StoreUnavailableError):
        payloads.delete(stored.tenant, stored.id, stored.payload_at)
