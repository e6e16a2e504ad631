"""The options of a command that plans a change, asks, and carries it out: one decorator and one object for all."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.options import Command, json_option, reason_option, yes_option


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOptions:
    """`reason` is empty if it is not given. `dry_run` prints the plan alone, and `yes` asks no question."""

    reason: str
    dry_run: bool
    yes: bool
    as_json: bool

    def require_confirmation(self, *, instead: str = "see the plan") -> None:
        """Raise a usage error if the command must ask and cannot. `instead` says what --dry-run is for."""
        require_confirmation(yes=self.yes or self.dry_run, alternative=f", or --dry-run to {instead}")

    def confirmed(self, question: str) -> bool:
        """Ask on stderr, unless --yes was given. Print a note if the user declines."""
        return confirmed(question, yes=self.yes)


def change_options(
    *,
    json: str,
    reason: str = "Why, for the audit entry.",
    dry_run: str = "Print the plan and change nothing.",
) -> Callable[[Command], Command]:
    """Calls the command with `how`, its `ChangeOptions`. The arguments are the help texts of the options."""
    options = (
        reason_option(reason),
        click.option("--dry-run", is_flag=True, help=dry_run),
        yes_option,
        json_option(json),
    )

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_options(*arguments: Any, reason: str, dry_run: bool, yes: bool, as_json: bool, **others: Any) -> None:
            how = ChangeOptions(reason=reason, dry_run=dry_run, yes=yes, as_json=as_json)
            command(*arguments, how=how, **others)

        decorated: Command = with_options
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate
