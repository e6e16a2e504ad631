"""A progress bar on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tidemill.cli.output import console


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Gives a function to call at each of `total` steps. Shows nothing without a terminal, or with nothing to do."""
    screen = console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, disable=not (total and screen.is_terminal)) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
