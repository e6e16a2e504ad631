"""What a redrive is going to do, before it does it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidemill.cli.dead_job_report import reason
from tidemill.cli.formatting import count
from tidemill.cli.output import say, show, show_table
from tidemill.domain.job import Job

_IDS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The jobs to redrive, and how many letters each lane has to tidy."""

    jobs: Sequence[Job]
    dead_letters: Mapping[str, int]

    @property
    def empty(self) -> bool:
        return not self.jobs and not any(self.dead_letters.values())

    def present(self, *, dry_run: bool) -> None:
        """On stdout if it is all there will be, else on stderr."""
        put = show if dry_run else say
        put(f"{count(len(self.jobs), 'dead job')} to redrive" + ("." if not self.jobs else ":"))
        if self.jobs:
            counts = Counter((job.type, reason(job)) for job in self.jobs)
            rows = [(type_, why, str(number)) for (type_, why), number in sorted(counts.items())]
            show_table(("TYPE", "REASON", "JOBS"), rows, numbers=[2], stderr=not dry_run)
            put("The first ids:" if len(self.jobs) > _IDS_SHOWN else "Their ids:")
            for job in self.jobs[:_IDS_SHOWN]:
                put(f"  {job.id}")
        for lane, dead_letters in self.dead_letters.items():
            put(f"{lane}: {count(dead_letters, 'letter')} in the dead-letter queue to look through.")
