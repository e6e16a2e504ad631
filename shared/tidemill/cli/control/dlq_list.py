"""`tidemill dlq list`: the dead jobs of all tenants, read from the job documents."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import click

from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.cli.control.job_filter_options import death_option
from tidemill.cli.errors import report_unreadable
from tidemill.cli.explain.job_report import ended_at, error_class, reason, report
from tidemill.cli.formatting import age, count
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import (
    ID_WIDTH,
    MIN_TABLE_WIDTH,
    console,
    new_table,
    plain_table,
    say,
    show_json_lines,
    tall_cell,
)
from tidemill.domain.job import DeathReason, Job
from tidemill.system import clock

#: Id, tenant, type, reason, error, attempts and the time since death.
_Row = tuple[str, str, str, str, str, int, str]


@click.command("list")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only jobs of this type; repeatable.")
@death_option
@json_option("Print each job with all its fields as a line of JSON.")
@click.pass_obj
def dlq_list(installation: Installation, *, types: tuple[str, ...], deaths: tuple[str, ...], as_json: bool) -> None:
    """List the dead jobs, earliest death first.

    Shows the reason, the error class, the attempts and the time since death. The list comes from the job documents. The
    number of messages in each dead-letter queue goes to stderr.
    """
    selection = JobFilter(types=types, deaths=tuple(map(DeathReason, deaths)))
    dead: Counter[str] = Counter()
    jobs = _selected(installation.redriver.dead_jobs(ANY_JOB, unreadable=report_unreadable), selection, dead)
    if as_json:
        show_json_lines(map(report, jobs))
    # A table is as wide as its widest cell, so it needs all rows. The jobs themselves are let go one by one.
    elif rows := [_row(job, clock.now()) for job in jobs]:
        _show(rows)
    else:
        of_types = f" of type {' or '.join(types)}" if types else ""
        say(f"No dead jobs{of_types}" + (f" that died for: {' or '.join(deaths)}." if deaths else "."))
    _compare(installation, dead)


def _selected(jobs: Iterable[Job], selection: JobFilter, dead: Counter[str]) -> Iterator[Job]:
    """Yield the selected jobs. Counts all of them by lane in `dead`."""
    for job in jobs:
        dead[str(job.lane)] += 1
        if job in selection:
            yield job


def _row(job: Job, now: datetime) -> _Row:
    return (job.id, job.tenant, job.type, reason(job), error_class(job), job.attempt, age(now - ended_at(job)))


def _show(rows: Sequence[_Row]) -> None:
    screen = console()
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


def _compare(installation: Installation, jobs_in: Mapping[str, int]) -> None:
    """Report the number of DLQ messages beside that of dead jobs. The job documents are authoritative."""
    for lane in installation.deployment.lanes:
        jobs, dlq_messages = jobs_in.get(lane, 0), installation.dlq_messages(lane)
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
