"""Which jobs a redrive will process, shown before it starts."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from tidemill.cli.formatting import count
from tidemill.cli.output import say, show, show_table
from tidemill.domain.attempt.error_fingerprint import job_fingerprint
from tidemill.domain.job import Job

#: A plan looks at so many jobs at most. A redrive of more jobs need not read all of them twice.
MOST_PLANNED: Final = 10_000
_IDS_SHOWN: Final = 5


@dataclass(slots=True)
class Plan:
    """The first jobs to redrive, by type and error."""

    jobs: int = 0
    #: Whether these are all.
    exact: bool = True
    causes: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: The first ones.
    ids: list[str] = field(default_factory=list)

    @staticmethod
    def of(jobs: Iterable[Job], *, limit: int | None) -> "Plan":
        plan, most = Plan(), min(limit or MOST_PLANNED, MOST_PLANNED)
        for job in islice(jobs, most + 1):
            if plan.jobs == most:
                plan.exact = most == limit
                break
            plan.jobs += 1
            plan.causes[job.type, job_fingerprint(job)] += 1
            plan.ids += [job.id] if len(plan.ids) < _IDS_SHOWN else []
        return plan

    @property
    def number(self) -> str:
        return ("" if self.exact else "more than ") + count(self.jobs, "job")

    def as_json(self) -> dict[str, object]:
        return {
            "jobs": self.jobs,
            "exact": self.exact,
            "causes": [{"type": type_, "error": error, "jobs": jobs} for (type_, error), jobs in self._sorted()],
            "first_ids": self.ids,
        }

    def show(self, *, dry_run: bool) -> None:
        """Print to stdout in a dry run, where the plan is the result, and to stderr otherwise."""
        put = show if dry_run else say
        dead = ("" if self.exact else "More than ") + count(self.jobs, "dead job")
        put(f"{dead} to redrive" + (":" if self.jobs else "."))
        if self.jobs:
            rows = [(type_, error, str(jobs)) for (type_, error), jobs in self._sorted()]
            show_table(("TYPE", "ERROR", "JOBS"), rows, numbers=[2], stderr=not dry_run)
            put(f"First {_IDS_SHOWN} IDs:" if self.jobs > _IDS_SHOWN else "IDs:")
            for job_id in self.ids:
                put(f"  {job_id}")

    def _sorted(self) -> list[tuple[tuple[str, str], int]]:
        return sorted(self.causes.items(), key=lambda cause: (-cause[1], cause[0]))
