"""Where output goes: results to stdout, the rest to stderr; for a terminal with `rich`, else as plain stable text."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tidemill.cli.formatting import visible

GAP: Final = "  "
#: A job's id is a UUID, which is never cut.
ID_WIDTH: Final = 36
#: A terminal less wide has no room for anything beside the ids.
NARROWEST: Final = 64


def console(*, stderr: bool = False) -> Console:
    """Made anew each time: it looks at the environment and the stream when it is made."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def say(text: str, *, style: str = "") -> None:
    """To the person, on stderr."""
    _print(text, style=style, stderr=True)


def show(text: str, *, style: str = "") -> None:
    """A result, on stdout."""
    _print(text, style=style, stderr=False)


def show_json(value: Any) -> None:
    """One line for a program; indented and coloured for a person."""
    screen = console()
    if not screen.is_terminal:
        click.echo(json.dumps(value, separators=(",", ":")))
        return
    indented = json.dumps(value, indent=2, ensure_ascii=False)
    # What a terminal would act on is escaped as JSON has it, so that it stays JSON.
    safe = "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in indented)
    screen.print(JSONHighlighter()(Text(safe)), soft_wrap=True)


def show_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = (), stderr: bool = False
) -> None:
    """One line a row. `numbers` are the columns to set to the right."""
    screen = console(stderr=stderr)
    if not screen.is_terminal:
        click.echo(plain_table(titles, rows), err=stderr)
        return
    table = framed()
    for index, title in enumerate(titles):
        table.add_column(title, justify="right" if index in numbers else "left")
    for row in rows:
        table.add_row(*map(visible, row))
    screen.print(table)


def framed() -> Table:
    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")


def stacked(first: str, second: str) -> Text:
    """Two lines of one cell."""
    return Text.assemble(visible(first), "\n", (visible(second), "dim"))


def plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns at least two blanks apart, and never cut, however wide."""
    lines = [list(titles), *([visible(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(titles))]
    return "\n".join(
        GAP.join(cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Gives a function to call at each of `total` steps. Shows nothing without a terminal, or with nothing to do."""
    screen = console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, disable=not (total and screen.is_terminal)) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)


def _print(text: str, *, style: str, stderr: bool) -> None:
    screen = console(stderr=stderr)
    if screen.is_terminal:
        # A result may be copied out of the terminal, so it is not broken into lines.
        screen.print(text, style=style, soft_wrap=not stderr)
    else:
        # Not through rich, which ends the process itself when a pipe is closed.
        click.echo(text, err=stderr)
