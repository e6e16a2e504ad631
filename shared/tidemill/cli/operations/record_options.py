"""The options of the commands that print records, the newest first: audit entries and changes of the configuration."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final, TypeVar

import click

from tidemill.cli.parameter_types import TIMESTAMP_OR_AGE

_SHOWN: Final = 20
_Command = Callable[..., None]
_Record = TypeVar("_Record")


def record_options(command: _Command) -> _Command:
    """Adds `limit`, `since` and `before`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def limited(records: Iterable[_Record], *, limit: int | None, since: datetime | None) -> Iterator[_Record]:
    """Who names a time wants all records since then."""
    return islice(records, limit if limit or since else _SHOWN)


_OPTIONS: Final = (
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        metavar="NUMBER",
        help=f"The most to show; default: {_SHOWN}, or all with --since.",
    ),
    click.option("--since", type=TIMESTAMP_OR_AGE, metavar="TIME", help="Those of this time or later: 30d, or a time."),
    click.option("--before", type=TIMESTAMP_OR_AGE, metavar="TIME", help="Those before this time: 2h, or a time."),
)
