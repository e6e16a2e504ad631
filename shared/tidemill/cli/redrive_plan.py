"""Which jobs and messages a redrive will process, shown before it starts."""

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
    """The jobs to redrive, and the number of DLQ messages to process on each lane."""

    jobs: Sequence[Job]
    dlq_messages: Mapping[str, int]

    @property
    def empty(self) -> bool:
        return not self.jobs and not any(self.dlq_messages.values())

    @property
    def question(self) -> str:
        if self.jobs:
            return f"Redrive {count(len(self.jobs), 'job')}?"
        return f"Process {count(sum(self.dlq_messages.values()), 'DLQ message')}?"

    def as_json(self) -> dict[str, object]:
        return {
            "jobs": [
                {"id": job.id, "tenant": job.tenant, "type": job.type, "reason": reason(job)} for job in self.jobs
            ],
            "dlq_messages": dict(self.dlq_messages),
        }

    def show(self, *, dry_run: bool) -> None:
        """Print to stdout in a dry run, where the plan is the result, and to stderr otherwise."""
        put = show if dry_run else say
        put(f"{count(len(self.jobs), 'dead job')} to redrive" + (":" if self.jobs else "."))
        if self.jobs:
            counts = Counter((job.type, reason(job)) for job in self.jobs)
            rows = [(type_, why, str(number)) for (type_, why), number in sorted(counts.items())]
            show_table(("TYPE", "REASON", "JOBS"), rows, numbers=[2], stderr=not dry_run)
            put(f"First {_IDS_SHOWN} IDs:" if len(self.jobs) > _IDS_SHOWN else "IDs:")
            for job in self.jobs[:_IDS_SHOWN]:
                put(f"  {job.id}")
        for lane, messages in self.dlq_messages.items():
            put(f"{lane}: {count(messages, 'DLQ message')} to process.")
