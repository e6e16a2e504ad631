"""Writes the help of each command, as the command itself says it, into the end of docs/reference/cli.md.

python -m tools.cli_reference docs/reference/cli.md
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from tidemill.cli.main import tidemill

_WIDTH: Final = 80
#: What stands below this line is written by `renewed`.
_MARK: Final = "Written by `python -m tools.cli_reference docs/reference/cli.md` from the commands themselves.\n"


def renewed(document: str) -> str:
    """The document with the help of all commands as it is now."""
    kept, _, _ = document.partition(_MARK)
    return "\n".join([kept + _MARK, *(f"```\n{text}\n```\n" for text in _helps(tidemill, "tidemill"))])


def _helps(command: click.Command, path: str) -> Iterator[str]:
    """Of a command and those below it."""
    context = click.Context(command, info_name=path, terminal_width=_WIDTH, help_option_names=["-h", "--help"])
    yield f"$ {path} --help\n{command.get_help(context)}"
    if isinstance(command, click.Group):
        for name, below in sorted(command.commands.items()):
            yield from _helps(below, f"{path} {name}")


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(renewed(file.read_text()))
