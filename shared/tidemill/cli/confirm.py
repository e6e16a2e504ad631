"""Asks for confirmation before a command changes anything."""

import sys

import click

from tidemill.cli.output import say


def stdin_is_terminal() -> bool:
    return sys.stdin.isatty()


def require_confirmation(*, yes: bool, alternative: str = "") -> None:
    """Raise a usage error if the command needs a confirmation that stdin cannot give."""
    if not yes and not stdin_is_terminal():
        raise click.UsageError("stdin is not a terminal; pass --yes to confirm" + alternative)


def confirmed(question: str, *, yes: bool) -> bool:
    """Ask on stderr. Print a note if the user declines."""
    if yes or click.confirm(question, err=True):
        return True
    say("Nothing was changed.")
    return False
