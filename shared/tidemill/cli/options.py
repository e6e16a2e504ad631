"""Options that many commands have in the same words."""

from collections.abc import Callable
from typing import Final

import click
from click.core import ParameterSource

from tidemill.cli.parameter_types import reason_text
from tidemill.names import RECONCILE_READ_UNITS

Command = Callable[..., None]
#: Passes `yes`.
yes_option: Final = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def json_option(what: str) -> Callable[[Command], Command]:
    """Passes `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=what)


def reason_option(why: str = "Why, for the audit entry.") -> Callable[[Command], Command]:
    """Passes `reason`, which is empty if it is not given."""
    return click.option("--reason", default="", callback=reason_text, metavar="TEXT", help=why)


def read_units_option(
    what: str = "Read units per second that the scan may take.", *, default: int = RECONCILE_READ_UNITS
) -> Callable[[Command], Command]:
    """Passes `read_units`: those that a scan may take in a second."""
    return click.option(
        "--read-units",
        type=click.IntRange(min=10),
        default=default,
        show_default=True,
        metavar="NUMBER",
        help=what,
    )


def given() -> set[str]:
    """The names of the parameters that the command line has. The others have their defaults."""
    context = click.get_current_context()
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
