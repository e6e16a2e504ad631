"""Refuses new jobs over HTTP while their tenant has used up its quota.

Each execution environment counts by itself, and adds its count to a shared one when it has reached the share of the
quota. So a job costs no write of its own, and E environments accept at most `quota.count + E * quota.share` jobs of
a tenant in a period.
"""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, Protocol

from msgspec import Struct

from tidemill.application.configuration import CurrentConfiguration
from tidemill.application.flows.flow_graphs import node_count
from tidemill.application.ports import Clock
from tidemill.domain.admission.quotas import Period, Quota, over
from tidemill.domain.errors import QuotaExceededError, StoreUnavailableError
from tidemill.domain.flows.flows import is_flow
from tidemill.domain.job import Job

_SHORTEST_RETRY_AFTER: Final = timedelta(seconds=1)
#: After a write that failed, an environment counts by itself for so long. Otherwise each job of a batch would wait for
#: a store that does not respond, until the request has no time left.
_PAUSE: Final = timedelta(seconds=5)
#: An environment forgets the ended periods when it knows more tenants than this.
_MOST_TENANTS: Final = 1_000


class SubmissionCounts(Protocol):
    """The shared counts of the tenants with a quota."""

    def add(self, tenant: str, period: Period, count: int) -> int:
        """Add to the count of this tenant and period; return all. Raises `StoreUnavailableError`."""


class _Count(Struct):
    """What one environment knows of the submissions of one tenant."""

    period: Period
    #: The shared count that the last write returned, and the jobs that were not added to it.
    shared: int = 0
    own: int = 0
    #: No write before this time.
    add_after: datetime | None = None


class QuotaCounter:
    """The counts of one execution environment. Its threads share it."""

    def __init__(self, counts: SubmissionCounts) -> None:
        self._counts = counts
        self._lock = threading.Lock()
        self._known: dict[str, _Count] = {}

    def count(self, tenant: str, quota: Quota, *, now: datetime, jobs: int = 1) -> None:
        """Count one submission, of so many jobs. Raises `QuotaExceededError` if the quota is used up before it."""
        period = quota.period_of(now)
        with self._lock:
            count = self._known.get(tenant)
            if count is None or count.period != period:
                self._forget(now)
                # What was not added belongs to a period that has ended, or to another quota.
                count = self._known[tenant] = _Count(period)
            if over(quota, shared=count.shared, own=count.own):
                raise QuotaExceededError(
                    count=quota.count,
                    period=quota.period,
                    known=count.shared + count.own,
                    retry_after=max(period.ends - now, _SHORTEST_RETRY_AFTER),
                )
            count.own += jobs
            if count.own >= quota.share and (count.add_after is None or count.add_after <= now):
                self._add(tenant, count, now)

    def _add(self, tenant: str, count: _Count, now: datetime) -> None:
        try:
            count.shared = self._counts.add(tenant, count.period, count.own)
        except StoreUnavailableError:
            # The jobs are accepted if their own writes succeed. It is unknown whether the count was added.
            count.shared += count.own
            count.add_after = now + _PAUSE
        count.own = 0

    def _forget(self, now: datetime) -> None:
        if len(self._known) >= _MOST_TENANTS:
            self._known = {tenant: count for tenant, count in self._known.items() if count.period.ends > now}


def _jobs(job: Job) -> int:
    """A flow is as many as it has nodes, each of which is a job that no quota counts when it starts."""
    return node_count(job.payload.text or "") if is_flow(job) else 1


def refuse_over_quota(
    configuration: CurrentConfiguration, counter: QuotaCounter, clock: Clock, *, exempt: str | None = None
) -> Callable[[Job], Job]:
    """`Admit`: raises `QuotaExceededError`. A tenant without a quota costs nothing.

    `exempt` is the tenant of the canaries: a refused canary would page, as if jobs did not get through.
    """

    def admit(job: Job) -> Job:
        if job.tenant == exempt:
            return job
        now = clock()
        if quota := configuration().quota_of(job.tenant, now=now):
            counter.count(job.tenant, quota, now=now, jobs=_jobs(job))
        return job

    return admit
