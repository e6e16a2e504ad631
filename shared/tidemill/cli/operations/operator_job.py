"""Watches a job of the engine that does the work of an operator's command: a migration, or a replay."""

import json
from collections.abc import Callable, Mapping
from time import sleep
from typing import Any, Final

import click

from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import visible, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.options import Command, read_units_option
from tidemill.cli.output import say
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State

_PAUSE_SECONDS: Final = 2.0
#: Give up after so many consecutive failed reads, of a minute or more. The job itself goes on.
_MOST_FAILURES: Final = 30


def pace_of(things: str) -> Callable[[Command], Command]:
    """Adds `rate` and `read_units`, which the job keeps to."""
    rate = click.option(
        "--rate",
        type=click.IntRange(min=1),
        default=50,
        show_default=True,
        metavar="NUMBER",
        help=f"At most so many {things} per second.",
    )
    return lambda command: rate(read_units_option()(command))


def watched(
    installation: Installation, tenant: str, job_id: str, *, name: str, summary: Callable[[Mapping[str, Any]], str]
) -> Job:
    """Show the progress until the job has ended. `name` is "migration", and `summary` shows what it has saved."""
    shown, failures, place = "", 0, f"{job_id} --tenant {tenant}"
    continues = f"The {name} continues: `tidemill get {place}` shows it, `tidemill cancel {place}` ends it."
    try:
        while True:
            try:
                job = installation.store.get(tenant, job_id)
            except StoreUnavailableError as error:
                failures += 1
                if failures == _MOST_FAILURES:
                    raise CommandError(f"the {name} {job_id} cannot be read", remedy=continues) from error
                say(visible_lines(f"{error}; retrying"))
                sleep(_PAUSE_SECONDS)
                continue
            failures = 0
            if job is None:
                raise CommandError(f"{name} {job_id} is gone", remedy="Run the command again.")
            if job.state.terminal:
                return job
            text = _progress(job, summary)
            if text != shown:
                say(text)
                shown = text
            sleep(_PAUSE_SECONDS)
    except KeyboardInterrupt:
        say(continues)
        raise


def result_of(job: Job) -> dict[str, Any]:
    """What an ended job reports, or what it saved last."""
    result: dict[str, Any] = json.loads(job.result or job.progress.checkpoint or "{}")
    return result


def require_success(job: Job, *, name: str) -> None:
    if job.state is State.SUCCEEDED:
        return
    cause = error.message if (error := job.causing_error) else job.death
    why = f": {visible(cause)}" if cause else ""
    raise CommandError(f"{name} {job.id} is {job.state}{why}", remedy="Run the command again to continue.")


def _progress(job: Job, summary: Callable[[Mapping[str, Any]], str]) -> str:
    text = f"{job.id}  {job.state}"
    if job.progress.checkpoint:
        text += f", {summary(json.loads(job.progress.checkpoint))}"
    if job.state is State.RETRYING and job.errors:
        text += f"; {visible(job.errors[-1].error_class)}: {visible(job.errors[-1].message)}"
    return text
