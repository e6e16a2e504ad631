"""Elects the probe of an open breaker: one parked job, which is queued to run at the time of the next probe."""

from collections.abc import Sequence
from typing import Final

from tidemill.application.breakers.breakers import Breakers
from tidemill.application.ports import Clock, ReleaseStore
from tidemill.domain.breakers.breaker import Breaker, in_turn
from tidemill.domain.errors import TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.waiting.waiting import Line

#: How many are tried. One may be cancelled just now, and then the next is elected.
_TRIES: Final = 3
#: How many jobs are read after a probe that failed.
_MOST_READ: Final = 25


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
    waiting = _waiting(line, breaker, store)
    if not waiting and parked and (job := store.get(parked.tenant, parked.id)) and job.wait and job.wait.line == line:
        waiting = [job]
    for job in in_turn(breaker, waiting)[:_TRIES]:
        if not breaker.may_elect(now=clock()):
            return None
        if (at := breakers.elect(breaker, job)) is None:
            # Another worker was faster.
            return None
        try:
            store.unpark(job, now=clock(), due=at)
        except (WriteRefusedError, TransactionConflictError):
            # It was cancelled, so it will not come. Or a transaction holds it for a moment.
            breakers.give_up(line.key, job)
            breaker = breakers.look(line.key)
        else:
            return job
    return None


def _waiting(line: Line, breaker: Breaker, store: ReleaseStore) -> Sequence[Job]:
    """The first jobs of the line, or those behind the last one whose probe failed. The line goes round."""
    if breaker.failed_probe is None:
        return store.parked(line, most=_TRIES)
    behind = store.parked(line, most=_MOST_READ, since=breaker.failed_probe_created)
    if any((job.tenant, job.id) != breaker.failed_probe for job in behind):
        return behind
    return store.parked(line, most=_MOST_READ)
