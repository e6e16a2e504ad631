"""The question before a command changes anything."""

import sys

import click

from tidemill.cli.output import say


def attended() -> bool:
    return sys.stdin.isatty()


def require_somebody(*, yes: bool, instead: str = "") -> None:
    """Refuse to begin what would have to ask, where nobody could answer."""
    if not yes and not attended():
        raise click.UsageError("there is nobody to ask: say --yes to go ahead" + instead)


def confirmed(question: str, *, yes: bool) -> bool:
    """On stderr. Says so when the answer is no."""
    if yes or click.confirm(question, err=True):
        return True
    say("Nothing was changed.")
    return False
