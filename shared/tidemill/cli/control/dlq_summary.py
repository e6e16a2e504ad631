"""`tidemill dlq summary`: the dead jobs of all tenants by type and cause."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

import click

from tidemill.application.job_filter import JobFilter
from tidemill.cli.errors import report_unreadable
from tidemill.cli.explain.job_report import ended_at
from tidemill.cli.formatting import DASH, age, count, timestamp, visible
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
from tidemill.domain.attempt.error_fingerprint import job_fingerprint
from tidemill.domain.job import Job
from tidemill.system import clock


@dataclass(slots=True)
class Cause:
    """The dead jobs of one type with one error."""

    first: datetime
    last: datetime
    jobs: int = 0
    tenants: set[str] = field(default_factory=set)
    #: The versions of the code in their last runs, as far as known: the number of jobs of each.
    versions: Counter[str] = field(default_factory=Counter)
    #: The id of the one that died last, and its tenant.
    example: tuple[str, str] = ("", "")

    def add(self, job: Job) -> None:
        at = ended_at(job)
        self.jobs += 1
        self.tenants.add(job.tenant)
        self.first = min(self.first, at)
        if version := next((entry.version for entry in reversed(job.history) if entry.version), ""):
            self.versions[version] += 1
        if at >= self.last:
            self.last, self.example = at, (job.id, job.tenant)


@click.command("summary")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only jobs of this type; repeatable.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="NUMBER",
    help="Read at most so many dead jobs, the earliest death first.",
)
@json_option("Print each group as a line of JSON.")
@click.pass_obj
def dlq_summary(installation: Installation, types: tuple[str, ...], *, limit: int, as_json: bool) -> None:
    """Group the dead jobs of all tenants by type and error.

    The largest group comes first. An error is its class and the first line of its message, in which quoted parts, ids
    and numbers are replaced: so the errors of one cause count as one. Each group shows when its first and its last job
    died, the version of the code that ran most of them last, and the number of other versions, and the last job as an
    example for `tidemill dlq show`.
    """
    dead = installation.redriver.dead_jobs(JobFilter(types=types), unreadable=report_unreadable)
    read = list(islice(dead, limit + 1))
    groups = sorted(_grouped(read[:limit]).items(), key=lambda group: (-group[1].jobs, group[0]))
    if as_json:
        show_json_lines(_json(type_, error, cause) for (type_, error), cause in groups)
    elif groups:
        _show([(type_, error, *_cells(cause, clock.now())) for (type_, error), cause in groups])
    else:
        say("No dead jobs.")
    if len(read) > limit:
        say(f"Only the first {count(limit, 'dead job')} were read; --limit reads more.")


def _grouped(jobs: Iterable[Job]) -> dict[tuple[str, str], Cause]:
    groups: dict[tuple[str, str], Cause] = {}
    for job in jobs:
        groups.setdefault((job.type, job_fingerprint(job)), Cause(ended_at(job), ended_at(job))).add(job)
    return groups


def _cells(cause: Cause, now: datetime) -> tuple[str, ...]:
    numbers = (str(cause.jobs), str(len(cause.tenants)), age(now - cause.first), age(now - cause.last))
    return (*numbers, _versions(cause.versions), *cause.example)


def _show(rows: Sequence[Sequence[str]]) -> None:
    screen = console()
    titles = ("TYPE", "ERROR", "JOBS", "TENANTS", "FIRST", "LAST", "VERSION", "EXAMPLE", "ITS TENANT")
    if not screen.is_terminal or screen.width < MIN_TABLE_WIDTH:
        click.echo(plain_table(titles, rows))
        return
    # Two lines per group, so that ids fit into 80 columns.
    table = new_table()
    table.add_column("TYPE\nERROR", overflow="fold")
    table.add_column("JOBS\nTENANTS", justify="right", no_wrap=True)
    table.add_column("FIRST\nLAST", justify="right", no_wrap=True)
    table.add_column("VERSION", overflow="fold")
    table.add_column("EXAMPLE\nITS TENANT", no_wrap=True, min_width=ID_WIDTH)
    for type_, error, jobs, tenants, first, last, version, example, tenant in rows:
        table.add_row(
            tall_cell(type_, error),
            tall_cell(jobs, tenants),
            tall_cell(first, last),
            visible(version),
            tall_cell(example, tenant),
        )
    screen.print(table)


def _versions(versions: Counter[str]) -> str:
    if not versions:
        return DASH
    ((most, _),) = versions.most_common(1)
    return f"{most} +{len(versions) - 1}" if len(versions) > 1 else most


def _json(type_: str, error: str, cause: Cause) -> dict[str, object]:
    return {
        "type": type_,
        "error": error,
        "jobs": cause.jobs,
        "tenants": len(cause.tenants),
        "first": timestamp(cause.first),
        "last": timestamp(cause.last),
        "versions": dict(cause.versions.most_common()),
        "example": {"id": cause.example[0], "tenant": cause.example[1]},
    }
