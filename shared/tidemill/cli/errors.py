"""Errors as a person wants to read them: the chain of causes, innermost last, and what to do."""

import os
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Final

import click

from tidemill.aws.clients import AWS_ERRORS
from tidemill.cli.formatting import visible_lines
from tidemill.cli.output import say
from tidemill.domain.errors import NewerSchemaError, TidemillError
from tidemill.operator.aws_error_advice import remedy
from tidemill.operator.deployment import DeploymentNotFoundError

FAILED: Final = 1
#: 128 and the number of the signal, as a shell has it.
INTERRUPTED: Final = 130
PIPE_CLOSED: Final = 141


class ExplainedError(TidemillError):
    """The command cannot do what was asked. `remedy` is what to do about it."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class ExplainingGroup(click.Group):
    """The one place where an error becomes output and an exit code. Wrong usage is click's own, and exits with 2."""

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
            # Whoever read has read enough. Python would complain once more when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(PIPE_CLOSED)
        except Exception as error:  # noqa: BLE001 - whatever it is, a person gets a sentence and a program an exit code
            if ctx.params.get("debug"):
                say(visible_lines("".join(traceback.format_exception(error))))
            say(visible_lines(explain(error)))
            ctx.exit(FAILED)
        return result


def explain(error: BaseException) -> str:
    chain = list(_chain(error))
    said: list[str] = []
    for link in chain:
        text = _described(link)
        # A translated error repeats what it translates.
        if not any(text.endswith(earlier) or earlier.endswith(text) for earlier in said):
            said.append(text)
    lines = [f"Error: {said[0]}", *(f"  caused by {text}" for text in said[1:])]
    advice = [found for link in chain if (found := _advice(link))]
    if advice:
        lines.append(f"What to do: {advice[0]}")
    elif not isinstance(error, (TidemillError, OSError, *AWS_ERRORS)):
        lines.append("What to do: this looks like a fault of tidemill itself; --debug shows where it happened.")
    return "\n".join(lines)


def tell_unreadable(tenant: str, job_id: str, error: TidemillError) -> None:
    """`Unreadable`, for commands that read many jobs: one that they cannot read is said, and the others are shown."""
    say(visible_lines(f"Passed over job {job_id} of {tenant}.\n{explain(error)}"))


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _described(error: BaseException) -> str:
    """Our own messages are sentences; others may need their class to make sense."""
    return str(error) if isinstance(error, TidemillError) and str(error) else f"{type(error).__name__}: {error}"


def _advice(error: BaseException) -> str | None:
    if isinstance(error, NewerSchemaError):
        return "Use the command line of the version that is deployed."
    if isinstance(error, (ExplainedError, DeploymentNotFoundError)):
        return error.remedy or None
    return remedy(error)
