"""What the demo shows: steps and notes as they happen, live counts, and the tables at the end."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from demo.checks import Checks
from demo.observe import StuckError
from demo.recount import Count
from tidemill.domain.job import Job
from tidemill.domain.states import State

TOP = 5


class Screen:
    """Writes to `console`: one line a happening, so that a log of it reads as well as a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def step(self, text: str) -> None:
        self._console.print(f"▸ {text}", style="bold", highlight=False)

    def note(self, text: str) -> None:
        self._console.print(f"  {text}", highlight=False, soft_wrap=True)

    progress = note

    @contextmanager
    def bar(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """Gives a function to call at each of `total` steps, from any thread."""
        columns = (TextColumn(f"  {what}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(what, total=total)
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
            (job.type, job.death or "", job.errors[-1].error_class if job.errors else "", job.attempt)
            for job in ended
            if job.state is State.DEAD
        )
        table = Table("type", "reason", "error", "attempts", "jobs", title="The dead")
        for row, count in sorted(deaths.items()):
            table.add_row(*map(str, row), str(count))
        self._console.print(table)

    def tops(self, counted: Count) -> None:
        for title, counts in (("Top countries", counted.countries), ("Top browsers", counted.browsers)):
            table = Table("", "clicks", title=title)
            for name, count in counts.most_common(TOP):
                table.add_row(name, str(count))
            self._console.print(table)

    def stuck(self, error: StuckError) -> None:
        self._console.print(f"the demo cannot go on: {error}", style="red", highlight=False)

    def verdict(self, checks: Checks) -> None:
        self._console.print(checks.table())
        self._console.print("every figure reconciles" if checks.hold else "some figures do not reconcile", style="bold")
