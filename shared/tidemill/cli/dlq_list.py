"""`tidemill dlq list`: the dead jobs of all tenants, read from their documents."""

import json
from collections import Counter
from collections.abc import Sequence

import click

from tidemill.application.redrive import Selection
from tidemill.cli.dead_job_report import ended_at, error_class, reason, report
from tidemill.cli.errors import tell_unreadable
from tidemill.cli.formatting import age, count
from tidemill.cli.installation import Installation
from tidemill.cli.output import ID_WIDTH, NARROWEST, console, framed, plain_table, say, stacked
from tidemill.domain.job import Job
from tidemill.system import clock


@click.command("list")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only jobs of this type; may be given again.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with everything known of the job.")
@click.pass_obj
def dlq_list(installation: Installation, types: tuple[str, ...], *, as_json: bool) -> None:
    """List the dead jobs, oldest death first.

    For each: reason, error class, attempts and how long it has been dead. They are read from their documents; how many
    letters the dead-letter queues hold is said on stderr.
    """
    everything = list(installation.redriver.plan(Selection(), unreadable=tell_unreadable))
    chosen = Selection(types=types)
    jobs = sorted((job for job in everything if job in chosen), key=lambda job: (ended_at(job), job.id))
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
        (job.id, job.tenant, job.type, reason(job), error_class(job), job.attempt, age(now - ended_at(job)))
        for job in jobs
    ]
    if not screen.is_terminal or screen.width < NARROWEST:
        titles = ("ID", "TENANT", "TYPE", "REASON", "ERROR", "ATTEMPTS", "AGE")
        click.echo(plain_table(titles, [[str(cell) for cell in row] for row in rows]))
        return
    # Two lines a job, so that ids fit into 80 columns.
    table = framed()
    table.add_column("ID\nTENANT", no_wrap=True, min_width=ID_WIDTH)
    table.add_column("TYPE\nERROR", overflow="fold")
    table.add_column("REASON\nATTEMPTS", overflow="fold")
    table.add_column("AGE", justify="right", no_wrap=True)
    for id_, tenant, type_, why, error, attempts, since in rows:
        table.add_row(stacked(id_, tenant), stacked(type_, error), stacked(why, count(attempts, "attempt")), since)
    screen.print(table)


def _compare(installation: Installation, dead: Sequence[Job]) -> None:
    """The documents are the record; a number of letters that differs is worth a word."""
    jobs_in = Counter(str(job.lane) for job in dead)
    for lane in installation.deployment.lanes:
        jobs, dead_letters = jobs_in[lane], installation.dead_letters(lane)
        held = f"{count(dead_letters, 'letter')} in the dead-letter queue"
        say(f"{lane}: {count(jobs, 'dead job')}, {held}.{_hint(jobs, dead_letters)}")


def _hint(jobs: int, dead_letters: int) -> str:
    if dead_letters > jobs:
        return " Some letters tell of jobs that have moved on or never started; `tidemill redrive` sorts them out."
    if dead_letters < jobs:
        return " Letters are kept for 14 days and may be seconds late; jobs are found without them."
    return ""
