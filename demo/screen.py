"""Prints the progress of the demo: steps, notes, live counts, and the tables at the end."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from demo.checks import Checks
from demo.observe import NoProgressError
from demo.recount import Count
from tidemill.domain.job import Job
from tidemill.domain.states import State

TOP = 5


class Screen:
    """Writes to `console`. Each event is one line, which also suits a log file."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def step(self, text: str) -> None:
        self._console.print(f"▸ {text}", style="bold", highlight=False)

    def note(self, text: str) -> None:
        self._console.print(f"  {text}", highlight=False, soft_wrap=True)

    progress = note

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a progress bar. Yields a function to call after each of `total` steps, from any thread."""
        columns = (TextColumn(f"  {label}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(label, total=total)
            yield lambda: progress.advance(task)

    def outcome(self, ended: Sequence[Job], *, replayed: int) -> None:
        states = Counter(job.state for job in ended)
        table = Table("accepted", "replayed", "succeeded", "retried", "dead", title="Jobs")
        retried = sum(bool(job.errors) and job.attempt > 1 for job in ended)
        table.add_row(
            *map(str, (len(ended), replayed, states[State.SUCCEEDED], retried, states[State.DEAD])),
        )
        self._console.print(table)
        self._deaths(ended)

    def _deaths(self, ended: Sequence[Job]) -> None:
        deaths = Counter(
            (job.type, job.death or "", job.causing_class or "", job.attempt)
            for job in ended
            if job.state is State.DEAD
        )
        table = Table("type", "reason", "error", "attempts", "jobs", title="Dead jobs")
        for row, count in sorted(deaths.items()):
            table.add_row(*map(str, row), str(count))
        self._console.print(table)

    def top_counts(self, counted: Count) -> None:
        for title, counts in (("Top countries", counted.countries), ("Top browsers", counted.browsers)):
            table = Table("", "clicks", title=title)
            for name, count in counts.most_common(TOP):
                table.add_row(name, str(count))
            self._console.print(table)

    def no_progress(self, error: NoProgressError) -> None:
        self._console.print(f"the demo stopped: {error}", style="red", highlight=False)

    def verdict(self, checks: Checks) -> None:
        self._console.print(checks.table())
        self._console.print(
            "every figure is right" if checks.all_hold else "some figures are wrong; see the rows with ✗", style="bold"
        )
