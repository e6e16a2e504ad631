"""`tidemill watch`: watch jobs until they end."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import sleep
from typing import Final

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tidemill.cli.formatting import JobView, progress_text, state_text, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import console, say, show_json
from tidemill.cli.parameter_types import JOB_ID
from tidemill.cli.polling import poll_until_ended
from tidemill.domain.states import TERMINAL, State

#: Exit codes. A dead job takes precedence over one that ended without a success otherwise.
DIED: Final = 3
ENDED_WITHOUT_SUCCESS: Final = 4


@click.command()
@click.argument("ids", type=JOB_ID, nargs=-1, required=True, metavar="ID...")
@click.option("--json", "as_json", is_flag=True, help="Print each ended job as one line of JSON, also to a terminal.")
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
