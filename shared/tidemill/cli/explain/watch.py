"""`tidemill watch`: watch jobs until they end."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from time import sleep
from typing import Final

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tidemill.aws.http_client import HttpApi
from tidemill.cli.api_call import ApiError, call, job_path
from tidemill.cli.formatting import JobView, progress_text, state_text, visible
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import console, say, show_json
from tidemill.cli.parameter_types import JOB_ID
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import TERMINAL, State

#: Exit codes. A dead job takes precedence over one that ended without a success otherwise.
DIED: Final = 3
ENDED_WITHOUT_SUCCESS: Final = 4
#: The pause starts here, and doubles while nothing changes.
_MIN_PAUSE_SECONDS: Final = 0.5
#: The longest pause of a quiet time, so that a job that reports progress again is drawn within seconds; and the longest
#: pause while rounds fail.
_MAX_PAUSE_SECONDS: Final = 3.0
_MAX_FAILED_PAUSE_SECONDS: Final = 15.0
#: Give up after this many consecutive failed rounds, which take about two minutes.
_MAX_FAILURES: Final = 12
_TRANSIENT: Final = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


@click.command()
@click.argument("ids", type=JOB_ID, nargs=-1, required=True, metavar="ID...")
@json_option("Print each ended job as one line of JSON, also to a terminal.")
@click.pass_obj
@click.pass_context
def watch(ctx: click.Context, installation: Installation, ids: tuple[str, ...], *, as_json: bool) -> None:
    """Watch your own jobs until they end, and print each as JSON.

    A terminal shows a progress bar per job. Otherwise each change prints a line on stderr. The exit code is 0 if all
    jobs succeeded, 3 if one died, and 4 if one was cancelled or expired and none died.

    Ctrl-C stops watching; the jobs continue.
    """
    ctx.exit(watch_jobs(installation, list(dict.fromkeys(ids)), one_line=as_json))


def watch_jobs(installation: Installation, ids: Sequence[str], *, one_line: bool = False) -> int:
    """Print the ended jobs, and return the exit code."""
    try:
        with _display(ids) as on_change:
            ended = poll_until_ended(installation.api, ids, on_change, pause=sleep)
    except KeyboardInterrupt:
        command = f"tidemill watch {visible(shlex.join(ids))}"
        say(f"Stopped watching. The jobs continue: `{command}` watches them again, `tidemill cancel` ends them.")
        raise
    for job in ended:
        show_json(job, one_line=one_line)
    states = {job["state"] for job in ended}
    return DIED if State.DEAD in states else ENDED_WITHOUT_SUCCESS if states - {State.SUCCEEDED} else 0


@contextmanager
def _display(ids: Sequence[str]) -> Iterator[Callable[[JobView], None]]:
    """Yield a function that shows a changed job: as a bar on a terminal, otherwise as a line."""
    screen = console(stderr=True)
    if screen.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[progress_text]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=screen, expand=True) as progress:
            tasks = {job_id: progress.add_task("", total=None, progress_text="") for job_id in ids}

            def update_bar(job: JobView) -> None:
                task, state, reported = tasks[job["id"]], job["state"], job.get("progress") or {}
                # A job that ended without figures has a full or an empty bar; before that, the bar has no length.
                total = reported.get("total") or (1 if state in TERMINAL else None)
                progress.update(
                    task,
                    description=(f"{visible(job['id'])} " if len(ids) > 1 else "") + state_text(job),
                    completed=total if state == State.SUCCEEDED else reported.get("done") or 0,
                    total=total,
                    progress_text=progress_text(job),
                )
                if state in TERMINAL:
                    progress.stop_task(task)

            yield update_bar
    else:
        lines: dict[str, str] = {}

        def print_line(job: JobView) -> None:
            line = ", ".join(part for part in (state_text(job), progress_text(job)) if part)
            if line != lines.get(job["id"]):
                lines[job["id"]] = line
                say(f"{visible(job['id'])}  {line}")

        yield print_line


def poll_until_ended(
    api: HttpApi, ids: Sequence[str], on_change: Callable[[JobView], None], *, pause: Callable[[float], None]
) -> list[JobView]:
    """The ended jobs, in the order of `ids`. Calls `on_change` for the first answer and for each change.

    An error in the first round is raised. Later, transient errors are retried: jobs take time, and networks fail.
    """
    latest: dict[str, JobView] = {}
    seconds, failures = _MIN_PAUSE_SECONDS, 0
    while True:
        before = dict(latest)
        try:
            for job_id in [one for one in ids if not _ended(latest.get(one))]:
                latest[job_id], _ = call(api, "GET", job_path(job_id))
                if latest[job_id] != before.get(job_id):
                    on_change(latest[job_id])
            failures = 0
        except (ApiError, StoreUnavailableError) as error:
            failures += 1
            if len(latest) < len(ids) or not _transient(error) or failures == _MAX_FAILURES:
                raise
            say(f"{error}; retrying")
        if all(_ended(latest.get(job_id)) for job_id in ids):
            return [latest[job_id] for job_id in ids]
        longest = _MAX_FAILED_PAUSE_SECONDS if failures else _MAX_PAUSE_SECONDS
        seconds = _MIN_PAUSE_SECONDS if latest != before else min(2 * seconds, longest)
        pause(seconds)


def _ended(job: JobView | None) -> bool:
    return job is not None and job["state"] in TERMINAL


def _transient(error: ApiError | StoreUnavailableError) -> bool:
    return isinstance(error, StoreUnavailableError) or error.status in _TRANSIENT
