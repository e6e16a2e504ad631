"""Writes results to stdout and everything else to stderr: with `rich` to a terminal, as stable plain text otherwise."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from typing import Any, Final

import click
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from tidemill.cli.formatting import visible

GAP: Final = "  "
#: The length of a UUID. Tables never truncate ids.
ID_WIDTH: Final = 36
#: A narrower terminal has no room for other columns beside the ids.
MIN_TABLE_WIDTH: Final = 64


def console(*, stderr: bool = False) -> Console:
    """Create a console for each use: rich reads the environment and the stream when it creates one."""
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False)


def say(text: str, *, style: str = "") -> None:
    """Print a message for the user on stderr."""
    _print(text, style=style, stderr=True)


def show(text: str, *, style: str = "") -> None:
    """Print a result on stdout."""
    _print(text, style=style, stderr=False)


def show_prose(text: str, *, style: str = "", indent: str = "  ") -> None:
    """Show text, wrapped between words on a terminal. `indent` begins each line after the first."""
    screen = console()
    lines = [text]
    if screen.is_terminal:
        # Ids and addresses stay whole.
        lines = wrap(text, screen.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    for line in lines:
        show(line, style=style)


def show_json(value: Any, *, one_line: bool = False) -> None:
    """Print one line for a program, or indented and coloured text to a terminal unless `one_line` is asked for."""
    if one_line or not (screen := console()).is_terminal:
        click.echo(json.dumps(value, separators=(",", ":")))
        return
    indented = json.dumps(value, indent=2, ensure_ascii=False)
    # JSON escapes keep the text valid JSON and keep the terminal from interpreting control characters.
    safe = "".join(one if one.isprintable() or one == "\n" else json.dumps(one)[1:-1] for one in indented)
    screen.print(JSONHighlighter()(Text(safe)), soft_wrap=True)


def show_json_lines(values: Iterable[Any]) -> None:
    """Print each value as a line, as soon as it is there."""
    for value in values:
        show_json(value, one_line=True)


def show_change(result: Mapping[str, Any], *, as_json: bool) -> None:
    """What a command has changed. Its text is the first entry, such as `{"paused": "lane=bulk", …}`."""
    if as_json:
        show_json(dict(result))
    else:
        (what, changed), *_ = result.items()
        show(f"{what} {visible(changed)}")


def show_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = (), stderr: bool = False
) -> None:
    """Print one line per row. `numbers` are the indexes of right-aligned columns."""
    screen = console(stderr=stderr)
    if not screen.is_terminal:
        click.echo(plain_table(titles, rows), err=stderr)
        return
    screen.print(rich_table(titles, rows, numbers=numbers))


def rich_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> Table:
    table = new_table()
    for index, title in enumerate(titles):
        table.add_column(title, justify="right" if index in numbers else "left")
    for row in rows:
        table.add_row(*map(visible, row))
    return table


def new_table() -> Table:
    return Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold")


def tall_cell(first: str, *others: str) -> Text:
    return Text.assemble(visible(first), *((f"\n{visible(other)}", "dim") for other in others))


def plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Separate columns by at least two spaces. Never truncate."""
    lines = [list(titles), *([visible(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(line[index]) for line in lines) for index in range(len(titles))]
    return "\n".join(
        GAP.join(cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


@contextmanager
def progress_bar(label: str, total: int | None) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each of `total` steps, or of an unknown number.

    A terminal shows the steps, their rate and the time that remains, on stderr.
    """
    screen = console(stderr=True)
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=screen, disable=total == 0 or not screen.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        yield lambda: progress.advance(task)


class _Rate(ProgressColumn):
    """Steps per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.finished_speed or task.speed or 0:.0f}/s")


def _print(text: str, *, style: str, stderr: bool) -> None:
    screen = console(stderr=stderr)
    if screen.is_terminal:
        # Users copy results out of the terminal, so results are not wrapped.
        screen.print(text, style=style, soft_wrap=not stderr)
    else:
        # Not through rich: it ends the process itself when the pipe is closed.
        click.echo(text, err=stderr)
