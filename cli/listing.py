"""`millrace list`, and the table of dead jobs that `millrace dlq list` shows too."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

import click
from rich.text import Text

from cli.installation import Installation
from cli.report import died_at, error_class, reason, report
from cli.screen import console, framed, plain_table, say
from cli.wording import age, count, visible
from shared.adapters import clock
from shared.application.redrive import Selection
from shared.domain.job import Job
from shared.domain.states import State

#: A job's id is a UUID, which is never cut.
_ID_WIDTH: Final = 36
#: A terminal less wide has no room for anything beside the ids.
_NARROWEST: Final = 64


def _state(_: click.Context, __: click.Parameter, value: str) -> str:
    if value != State.DEAD:
        refused = f"{value} ones cannot" if value in set(State) else f"{value!r} is no state"
        raise click.BadParameter(f"dead jobs can be listed, {refused}; `millrace get ID` shows a job in any state")
    return value


@click.command("list")
@click.option("--state", callback=_state, default=State.DEAD.value, show_default=True, help="Only dead can be listed.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only jobs of this type; may be given again.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with everything known of the job.")
@click.pass_obj
def list_(installation: Installation, state: str, types: tuple[str, ...], *, as_json: bool) -> None:  # noqa: ARG001
    """List the dead jobs of all tenants, oldest death first."""
    list_dead(installation, types, as_json=as_json)


def list_dead(installation: Installation, types: Sequence[str], *, as_json: bool) -> None:
    everything = list(installation.redriver.plan(Selection()))
    chosen = Selection(types=types)
    jobs = sorted((job for job in everything if job in chosen), key=lambda job: (died_at(job), job.id))
    if as_json:
        for job in jobs:
            click.echo(json.dumps(report(job), separators=(",", ":")))
    elif jobs:
        _show(jobs)
    else:
        say("No dead jobs" + (f" of type {' or '.join(types)}." if types else "."))
    _compare(installation, everything)


def _show(jobs: Sequence[Job]) -> None:
    screen = console()
    now = clock.now()
    rows = [
        (job.id, job.tenant, job.type, reason(job), error_class(job), job.attempt, age(now - died_at(job)))
        for job in jobs
    ]
    if not screen.is_terminal or screen.width < _NARROWEST:
        titles = ("ID", "TENANT", "TYPE", "REASON", "ERROR", "ATTEMPTS", "AGE")
        click.echo(plain_table(titles, [[str(cell) for cell in row] for row in rows]))
        return
    # Two lines a job, so that ids fit into 80 columns.
    table = framed()
    table.add_column("ID\nTENANT", no_wrap=True, min_width=_ID_WIDTH)
    table.add_column("TYPE\nERROR", overflow="fold")
    table.add_column("REASON\nATTEMPTS", overflow="fold")
    table.add_column("AGE", justify="right", no_wrap=True)
    for id_, tenant, type_, why, error, attempts, since in rows:
        table.add_row(_two(id_, tenant), _two(type_, error), _two(why, count(attempts, "attempt")), since)
    screen.print(table)


def _two(first: str, second: str) -> Text:
    return Text.assemble(visible(first), "\n", (visible(second), "dim"))


def _compare(installation: Installation, dead: Sequence[Job]) -> None:
    """The documents are the record; a number of letters that differs is worth a word."""
    jobs_in = Counter(str(job.lane) for job in dead)
    for lane in installation.deployment.lanes:
        jobs, letters = jobs_in[lane], installation.letters(lane)
        held = f"{count(letters, 'letter')} in the dead-letter queue"
        say(f"{lane}: {count(jobs, 'dead job')}, {held}.{_hint(jobs, letters)}")


def _hint(jobs: int, letters: int) -> str:
    if letters > jobs:
        return " Some letters tell of jobs that have moved on or never started; `millrace redrive` sorts them out."
    if letters < jobs:
        return " Letters are kept for 14 days and may be seconds late; jobs are found without them."
    return ""
