"""Cancels or purges the jobs of a filter: the plan, the question, the parallel writes and the result."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from tidemill.application.job_filter import JobFilter
from tidemill.application.passes.pace import MOST_WRITES_PER_SECOND
from tidemill.cli.control.change_options import ChangeOptions
from tidemill.cli.control.job_filter_options import as_options
from tidemill.cli.control.parallel_writes import ParallelWrites
from tidemill.cli.control.unreadable_jobs import UnreadableJobs
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.output import progress_bar, say, show, show_json, show_table
from tidemill.domain.job import Job

#: The plan reads so many jobs, and the change goes on from there: the table is read once, and few jobs are held.
MOST_PLANNED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkChange:
    """One command. `name` is "purge", `action` "delete", `verb` "Deleted"."""

    name: str
    action: str
    verb: str
    wanted: JobFilter
    limit: int | None
    rate: int | None
    how: ChangeOptions

    def run(
        self,
        installation: Installation,
        jobs: Iterable[Job],
        write: Callable[[Job], bool],
        *,
        unreadable: UnreadableJobs,
    ) -> None:
        """Change these jobs, up to the limit. `unreadable` gets those that `jobs` leaves out.

        Raises `CommandError` if jobs are left that it was to change.
        """
        stream: Iterator[Job] = islice(jobs, self.limit)
        first = list(islice(stream, MOST_PLANNED))
        exact = len(first) < MOST_PLANNED or self.limit == MOST_PLANNED
        rate = self.rate or MOST_WRITES_PER_SECOND
        writes = ParallelWrites(write, verb=self.verb, rate=rate, unreadable=unreadable)
        number = ("" if exact else "at least ") + count(len(first), "job")
        if self.how.dry_run or not first:
            if self.how.as_json:
                show_json({"jobs": len(first), "exact": exact} if self.how.dry_run else writes.counts)
            else:
                self._show_plan(number, first)
                show("Nothing was changed.")
            if not self.how.dry_run:
                unreadable.raise_for_any()
            return
        self._show_plan(number, first)
        if self.how.confirmed(f"{self.action.capitalize()} {number}?"):
            options = as_options(self.wanted, limit=self.limit, rate=self.rate)
            with audited(
                installation, self.name, options=options, counts=lambda: writes.numbers, reason=self.how.reason
            ):
                self._write(writes, chain(first, stream), len(first) if exact else None)

    def _write(self, writes: ParallelWrites, jobs: Iterator[Job], total: int | None) -> None:
        try:
            with progress_bar(self.action, total) as advance:
                writes.run(jobs, advance)
        except BaseException:
            say(f"{writes.summary} Run the command again to continue.")
            raise
        if self.how.as_json:
            show_json(writes.counts)
        else:
            show(writes.summary)
        if writes.left_count:
            raise CommandError("some groups are busy, and may wait for these jobs", remedy="Run `tidemill reconcile`.")
        writes.unreadable.raise_for_any()

    def _show_plan(self, number: str, jobs: list[Job]) -> None:
        """Print to stdout in a dry run, where the plan is the result, and to stderr otherwise."""
        put = show if self.how.dry_run else say
        put(f"{number[0].upper()}{number[1:]} to {self.action}" + (":" if jobs else "."))
        if jobs:
            counts = Counter((job.type, str(job.state)) for job in jobs)
            rows = [(type_, state, str(jobs)) for (type_, state), jobs in sorted(counts.items())]
            show_table(("TYPE", "STATE", "JOBS"), rows, numbers=[2], stderr=not self.how.dry_run)
