"""`tidemill watch`: follow jobs to their end."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import sleep
from typing import Final

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tidemill.cli.formatting import JobView, how_far, standing, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import console, say, show_json
from tidemill.cli.polling import watch
from tidemill.domain.states import TERMINAL, State

#: Of those that did not succeed, the dead count before the cancelled.
DIED: Final = 3
CANCELLED: Final = 4


@click.command("watch")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.pass_obj
@click.pass_context
def watch_(ctx: click.Context, installation: Installation, ids: tuple[str, ...]) -> None:
    """Follow jobs of your own to their end, and print each as JSON.

    A terminal shows a bar for each job, how far it says it is; elsewhere there is a line on stderr for each change.
    Exits with 0 when all have succeeded, with 3 when one died, and with 4 when one was cancelled and none died.

    Ctrl-C ends the watching. The jobs go on.
    """
    ctx.exit(follow(installation, list(dict.fromkeys(ids))))


def follow(installation: Installation, ids: Sequence[str]) -> int:
    """Watch, print the jobs, and return the exit code that says how they ended."""
    try:
        with _display(ids) as changed:
            ended = watch(installation.api, ids, changed, pause=sleep)
    except KeyboardInterrupt:
        again = f"tidemill watch {' '.join(map(visible, ids))}"
        say(f"No longer watching. What has not ended goes on: `{again}` looks again, and `tidemill cancel` ends it.")
        raise
    for job in ended:
        show_json(job)
    states = {job["state"] for job in ended}
    return DIED if State.DEAD in states else CANCELLED if State.CANCELLED in states else 0


@contextmanager
def _display(ids: Sequence[str]) -> Iterator[Callable[[JobView], None]]:
    """Gives a function to call with each change of a job."""
    screen = console(stderr=True)
    if screen.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[far]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=screen, expand=True) as progress:
            tasks = {job_id: progress.add_task("", total=None, far="") for job_id in ids}

            def redraw(job: JobView) -> None:
                name = f"{visible(job['id'])} " if len(ids) > 1 else ""
                task, state, far = tasks[job["id"]], job["state"], job.get("progress") or {}
                # An end without figures is a whole bar or an empty one; before it there is nothing to measure.
                total = far.get("total") or (1 if state in TERMINAL else None)
                done = total if state == State.SUCCEEDED else far.get("done") or 0
                progress.update(task, description=name + standing(job), completed=done, total=total, far=how_far(job))
                if state in TERMINAL:
                    progress.stop_task(task)

            yield redraw
    else:
        said: dict[str, str] = {}

        def tell(job: JobView) -> None:
            line = ", ".join(part for part in (standing(job), how_far(job)) if part)
            if line != said.get(job["id"]):
                said[job["id"]] = line
                say(f"{visible(job['id'])}  {line}")

        yield tell
