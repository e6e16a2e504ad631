"""Turns errors into text and exit codes: the chain of causes, the root cause last, and what to do."""

import os
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Final

import click

from tidemill.application.ports import UnreadableItem
from tidemill.aws.clients import AWS_ERRORS
from tidemill.cli.formatting import visible, visible_lines
from tidemill.cli.output import say
from tidemill.domain.errors import (
    ConfigurationConflictError,
    MalformedDocumentError,
    NewerSchemaError,
    TidemillError,
)
from tidemill.operator.aws_error_advice import remedy
from tidemill.operator.deployments.deployment import DeploymentNotFoundError

FAILED: Final = 1
#: 128 plus the number of the signal, as in a shell.
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141


class CommandError(TidemillError):
    """A command failed or was refused. `remedy` says what to do, and may be empty."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class ErrorReportingGroup(click.Group):
    """The only place that turns an error into output and an exit code. click itself exits with 2 on wrong usage."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for each in args:
            # Bytes that are not UTF-8 become half surrogate pairs, which no request can have.
            if any("\ud800" <= character <= "\udfff" for character in each):
                raise click.UsageError(f"{visible(each)} is not UTF-8 text; check the encoding of your terminal", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort):
            say("Interrupted.")
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            # The reader closed the pipe. Without this, Python would complain again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(PIPE_CLOSED)
        except Exception as error:  # noqa: BLE001 - every error becomes a readable message and an exit code
            if ctx.params.get("debug"):
                say(visible_lines("".join(traceback.format_exception(error))))
            say(visible_lines(explain(error)))
            ctx.exit(FAILED)
        return result


def explain(error: BaseException) -> str:
    """The error, its causes and one remedy, one per line."""
    chain = list(_chain(error))
    messages: list[str] = []
    for link in chain:
        text = _message(link)
        # A translated error repeats the text of the original.
        if not any(text.endswith(earlier) or earlier.endswith(text) for earlier in messages):
            messages.append(text)
    lines = [f"Error: {messages[0]}", *(f"  caused by {text}" for text in messages[1:])]
    remedies = [found for link in chain if (found := _remedy(link))]
    if remedies:
        lines.append(f"What to do: {remedies[0]}")
    elif not isinstance(error, (TidemillError, OSError, *AWS_ERRORS)):
        lines.append("What to do: this looks like a bug in tidemill; run `tidemill --debug …` to see the traceback.")
    return "\n".join(lines)


def report_unreadable(tenant: str, job_id: str, error: TidemillError) -> None:
    """`Unreadable` for commands that read many jobs: report the job on stderr, and continue with the others."""
    say(visible_lines(f"Skipped job {job_id} of tenant {tenant}.\n{explain(error)}"))


def report_unreadable_item(item: UnreadableItem) -> None:
    """Report an unreadable item, for commands that scan the table."""
    say(f"Skipped {visible(item.key)}: {visible(str(item.error))}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _message(error: BaseException) -> str:
    """Messages of `TidemillError` are sentences; other errors may need their class to make sense."""
    return str(error) if isinstance(error, TidemillError) and str(error) else f"{type(error).__name__}: {error}"


def _remedy(error: BaseException) -> str | None:
    if isinstance(error, ConfigurationConflictError):
        return "Read it again with `tidemill config get`, then decide whether the change is still right."
    if isinstance(error, NewerSchemaError):
        return (
            "Use the command line of the version that wrote it. If the functions cannot read it either, "
            "`tidemill status` says whether they are rolled back; see `unreadable jobs` in the runbook."
        )
    # One of its subclasses has a remedy of its own, and the other needs none.
    if type(error) is MalformedDocumentError:
        return "It is damaged, or was changed by hand: see `unreadable jobs` in the runbook."
    if isinstance(error, (CommandError, DeploymentNotFoundError)):
        return error.remedy or None
    return remedy(error)
