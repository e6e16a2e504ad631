"""`JobFilter`: which jobs a command of an operator is about. Listing, redrive, cancel and purge share it. Pure."""

from collections.abc import Collection
from datetime import datetime

from msgspec import Struct

from tidemill.domain.attempt.error_fingerprint import job_fingerprint
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.states import State


class JobFilter(Struct, frozen=True, kw_only=True):
    """A job must match each field. An empty field, or None, matches every job."""

    ids: Collection[str] = ()
    tenant: str | None = None
    states: Collection[State] = ()
    types: Collection[str] = ()
    #: Bounds of the time of submission. `until` is not included.
    since: datetime | None = None
    until: datetime | None = None
    #: Bounds of the time when the job ended. `ended_until` is not included. A live job matches neither.
    ended_since: datetime | None = None
    ended_until: datetime | None = None
    deaths: Collection[DeathReason] = ()
    #: The class of `Job.causing_error`.
    error: str | None = None
    #: The fingerprint of the error, as `job_fingerprint` returns it.
    fingerprint: str | None = None
    #: One of the tags.
    tag: str | None = None

    def __contains__(self, job: Job) -> bool:
        return (
            self.fits_key(job.tenant, job.id)
            and (not self.states or job.state in self.states)
            and (not self.types or job.type in self.types)
            and self.tag in {None, *job.tags}
            and (self.since is None or job.created_at >= self.since)
            and (self.until is None or job.created_at < self.until)
            and self._fits_end(job.finished_at)
            and (not self.deaths or job.death in self.deaths)
            and (self.error is None or job.causing_class == self.error)
            and (self.fingerprint is None or job_fingerprint(job) == self.fingerprint)
        )

    def fits_key(self, tenant: str, job_id: str) -> bool:
        """For an entry of an index, which holds nothing else of its job."""
        return self.tenant in {None, tenant} and (not self.ids or job_id in self.ids)

    def _fits_end(self, ended_at: datetime | None) -> bool:
        if self.ended_since is None and self.ended_until is None:
            return True
        return (
            ended_at is not None
            and (self.ended_since is None or ended_at >= self.ended_since)
            and (self.ended_until is None or ended_at < self.ended_until)
        )


ANY_JOB = JobFilter()
