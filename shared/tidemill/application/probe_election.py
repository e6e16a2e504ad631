"""Elects the probe of an open breaker: one parked job, which is queued to run at the time of the next probe."""

from typing import Final

from tidemill.application.breakers import Breakers
from tidemill.application.ports import Clock, ReleaseStore
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.waiting import Line

#: The first jobs of the line. One may be cancelled just now, and then the next is elected.
_CANDIDATES: Final = 3


def elect_probe(
    line: Line, *, breakers: Breakers, store: ReleaseStore, clock: Clock, parked: Job | None = None
) -> Job | None:
    """The elected job. None if the breaker has a probe, or has closed, or if no job waits for it.

    `parked` is a job that was just parked, which the index may not show yet. Raises `StoreUnavailableError`.
    """
    # Most calls end here: a job is parked while another one is on its way to probe.
    if not breakers.look(line.key).may_elect(now=clock()):
        return None
    breaker = breakers.look(line.key, afresh=True)
    waiting = {(job.tenant, job.id): job for job in store.parked(line, most=_CANDIDATES)}
    if not waiting and parked and (job := store.get(parked.tenant, parked.id)) and job.wait and job.wait.line == line:
        waiting[job.tenant, job.id] = job
    for job in waiting.values():
        if not breaker.may_elect(now=clock()):
            return None
        if (at := breakers.elect(breaker, job)) is None:
            # Another worker was faster.
            return None
        try:
            store.unpark(job, now=clock(), due=at)
        except WriteRefusedError:
            # It was cancelled, so it will not come.
            breaker = breakers.give_up(line.key, job)
        else:
            return job
    return None
