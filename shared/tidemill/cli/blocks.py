"""Lines and tables that a command prints once, or shows live."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.text import Text

from tidemill.cli.formatting import visible
from tidemill.cli.output import rich_table, show, show_prose, show_table

RED = "bold red"
YELLOW = "bold yellow"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text, without control characters."""

    text: str
    style: str = ""
    #: It is to be copied, so it is not wrapped.
    is_command: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """`numbers` are the indexes of right-aligned columns."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[int] = ()


Block = Line | Table


def show_blocks(blocks: Iterable[Block]) -> None:
    for block in blocks:
        if isinstance(block, Table):
            show_table(block.titles, block.rows, numbers=block.numbers)
        elif block.is_command:
            show(visible(block.text), style=block.style)
        else:
            show_prose(visible(block.text), style=block.style)


def rendered(blocks: Iterable[Block]) -> Group:
    """For a live display."""
    return Group(
        *(
            rich_table(block.titles, block.rows, numbers=block.numbers)
            if isinstance(block, Table)
            else Text(visible(block.text), style=block.style)
            for block in blocks
        )
    )
