"""Replaces the end of docs/reference/cli.md with the help text of every command.

python -m tools.cli_reference docs/reference/cli.md
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from tidemill.cli.main import tidemill

_WIDTH: Final = 80
#: Each command has this option; the page leaves its line out.
_OF_HELP: Final = re.compile(r" *-h, --help ")
#: `updated` replaces everything below this line.
_MARKER: Final = "Generated from the commands by `python -m tools.cli_reference docs/reference/cli.md`.\n"


def updated(document: str) -> str:
    """The document with the current help texts."""
    kept, _, _ = document.partition(_MARKER)
    return "\n".join([kept + _MARKER, *(f"```\n{text}\n```\n" for text in _help_texts(tidemill, "tidemill"))])


def _help_texts(command: click.Command, path: str) -> Iterator[str]:
    """The help texts of a command and its subcommands. Hidden commands are left out."""
    context = click.Context(command, info_name=path, terminal_width=_WIDTH, help_option_names=["-h", "--help"])
    shown = "\n".join(line for line in command.get_help(context).splitlines() if not _OF_HELP.match(line))
    yield shown
    if isinstance(command, click.Group):
        for name, subcommand in sorted(command.commands.items()):
            if not subcommand.hidden:
                yield from _help_texts(subcommand, f"{path} {name}")


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(updated(file.read_text()))
