"""Payloads as most callers get them: a deletion that fails is owed, and wake does it a minute later.

Without that a file stays until the bucket's rule of age deletes it, after three years: no scan finds files. Publish and
the runner of owed work have the payloads without this. They report a failure, and the work of the runner is owed
already.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from tidemill.application.ports import Clock, Payloads
from tidemill.domain.error_text import error_text
from tidemill.domain.job import Job

if TYPE_CHECKING:
    from tidemill.application.dispatch.owed import OwedWork

#: A send of a write that the network holds up, after the SDK has sent it again, arrives within seconds.
_ARRIVES_WITHIN: Final = timedelta(minutes=1)


class OwingPayloads:
    """`WriterPayloads` over others. `owed` is called when a deletion has failed, or is for later."""

    def __init__(self, payloads: Payloads, *, owed: "Callable[[], OwedWork]", clock: Clock) -> None:
        self._payloads = payloads
        self._owed = owed
        self._clock = clock

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:
        return self._payloads.put_away(job, now=now)

    def stays_inline(self, job: Job) -> bool:
        return self._payloads.stays_inline(job)

    def load(self, job: Job) -> str:
        return self._payloads.load(job)

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        """Delete it, or owe that. Raises why the deletion failed only if it cannot be owed either.

        The caller has made sure that no document names the location, and no document ever will: no location is given
        twice.
        """
        try:
            self._payloads.delete(tenant, job_id, location)
        except Exception as failed:  # noqa: BLE001 - also a denied call: it is reported when it stays denied
            try:
                self._owe(tenant, job_id, location, since=self._clock(), error=error_text(failed))
            except Exception:  # noqa: BLE001 - the caller knows what the failure of its deletion means
                raise failed from None

    def delete_later(self, job: Job) -> None:
        if job.payload.location is None:
            return
        since = self._clock() + _ARRIVES_WITHIN
        # The caller has an error of its own to report.
        with suppress(Exception):
            self._owe(
                job.tenant, job.id, job.payload.location, since=since, error="the write of its job was not answered"
            )

    def _owe(self, tenant: str, job_id: str, location: str | None, *, since: datetime, error: str) -> None:
        from tidemill.application.dispatch.owed import Kind, Work  # noqa: PLC0415 - seldom, and imports are most of a cold start

        work = Work(kind=Kind.DELETE_PAYLOAD, tenant=tenant, name=job_id, payload_at=location)
        self._owed().owe(work, now=since, error=error)
