"""`tidemill dlq list`: the dead jobs of all tenants, read from the job documents."""

import json
from collections import Counter
from collections.abc import Sequence

import click

from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.cli.dead_job_report import ended_at, error_class, reason, report
from tidemill.cli.errors import report_unreadable
from tidemill.cli.formatting import age, count
from tidemill.cli.installation import Installation
from tidemill.cli.job_filter_options import death_option
from tidemill.cli.output import ID_WIDTH, MIN_TABLE_WIDTH, console, new_table, plain_table, say, tall_cell
from tidemill.domain.job import DeathReason, Job
from tidemill.system import clock


@click.command("list")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only jobs of this type; repeatable.")
@death_option
@click.option("--json", "as_json", is_flag=True, help="Print each job with all its fields as a line of JSON.")
@click.pass_obj
def dlq_list(installation: Installation, *, types: tuple[str, ...], deaths: tuple[str, ...], as_json: bool) -> None:
    """List the dead jobs, earliest death first.

    Shows the reason, the error class, the attempts and the time since death. The list comes from the job documents. The
    number of messages in each dead-letter queue goes to stderr.
    """
    dead = list(installation.redriver.plan(ANY_JOB, unreadable=report_unreadable))
    selection = JobFilter(types=types, deaths=tuple(map(DeathReason, deaths)))
    jobs = sorted((job for job in dead if job in selection), key=lambda job: (ended_at(job), job.id))
    if as_json:
        for job in jobs:
            click.echo(json.dumps(report(job), separators=(",", ":")))
    elif jobs:
        _show(jobs)
    else:
        of_types = f" of type {' or '.join(types)}" if types else ""
        say(f"No dead jobs{of_types}" + (f" that died for: {' or '.join(deaths)}." if deaths else "."))
    _compare(installation, dead)


def _show(jobs: Sequence[Job]) -> None:
    screen = console()
    now = clock.now()
    rows = [
        (job.id, job.tenant, job.type, reason(job), error_class(job), job.attempt, age(now - ended_at(job)))
        for job in jobs
    ]
    if not screen.is_terminal or screen.width < MIN_TABLE_WIDTH:
        titles = ("ID", "TENANT", "TYPE", "REASON", "ERROR", "ATTEMPTS", "AGE")
        click.echo(plain_table(titles, [[str(cell) for cell in row] for row in rows]))
        return
    # Two lines per job, so that ids fit into 80 columns.
    table = new_table()
    table.add_column("ID\nTENANT", no_wrap=True, min_width=ID_WIDTH)
    table.add_column("TYPE\nERROR", overflow="fold")
    table.add_column("REASON\nATTEMPTS", overflow="fold")
    table.add_column("AGE", justify="right", no_wrap=True)
    for id_, tenant, type_, why, error, attempts, since_death in rows:
        table.add_row(
            tall_cell(id_, tenant),
            tall_cell(type_, error),
            tall_cell(why, count(attempts, "attempt")),
            since_death,
        )
    screen.print(table)


def _compare(installation: Installation, dead: Sequence[Job]) -> None:
    """Report the number of DLQ messages beside that of dead jobs. The job documents are authoritative."""
    jobs_in = Counter(str(job.lane) for job in dead)
    for lane in installation.deployment.lanes:
        jobs, dlq_messages = jobs_in[lane], installation.dlq_messages(lane)
        say(f"{lane}: {count(jobs, 'dead job')}, {count(dlq_messages, 'DLQ message')}.{_hint(jobs, dlq_messages)}")


def _hint(jobs: int, dlq_messages: int) -> str:
    if dlq_messages > jobs:
        return (
            " Some messages belong to jobs that have moved on or that no worker ever started; "
            "reconcile removes them every five minutes, and `tidemill dlq sweep` does so now."
        )
    if dlq_messages < jobs:
        return " DLQ messages are kept for 14 days and may arrive seconds late; this list does not depend on them."
    return ""
