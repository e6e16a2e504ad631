"""Restores the order of groups in a stream of dead jobs that is ordered by the time of death. Pure."""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Final

from tidemill.domain.job import Job

#: The jobs of a group run one after another, so they also die so, by the clocks of their workers. These differ less
#: than this, or leases would not hold either.
CLOCKS_DIFFER: Final = timedelta(minutes=1)

Group = tuple[str, str]


def group_of(job: Job) -> Group | None:
    """Tenant and name of its group."""
    return None if job.group.key is None else (job.tenant, job.group.key)


def in_group_order(jobs: Iterable[Job]) -> Iterator[Job]:
    """The same jobs; those of one group by their position. Holds those jobs of groups that died within a minute."""
    #: For each job held, when it died, and its group. It stands for the first job of that group, not for itself.
    turns: deque[tuple[datetime, Group]] = deque()
    groups: dict[Group, list[tuple[int, str, Job]]] = {}
    for job in jobs:
        group, died = group_of(job), job.finished_at or job.created_at
        while turns and died - turns[0][0] > CLOCKS_DIFFER:
            yield _next(turns, groups)
        if group is None:
            yield job
        else:
            turns.append((died, group))
            heappush(groups.setdefault(group, []), (job.group.sequence or 0, job.id, job))
    while turns:
        yield _next(turns, groups)


def _next(turns: deque[tuple[datetime, Group]], groups: dict[Group, list[tuple[int, str, Job]]]) -> Job:
    _, group = turns.popleft()
    job = heappop(groups[group])[2]
    if not groups[group]:
        del groups[group]
    return job
