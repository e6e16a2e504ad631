"""The table of the dead jobs of all tenants, read from their documents."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Final

import click

from tidemill.application.redrive import Selection
from tidemill.cli.dlq_show import ended_at, error_class, reason, report, tell_unreadable
from tidemill.cli.formatting import age, count
from tidemill.cli.installation import Installation
from tidemill.cli.output import console, framed, plain_table, say, stacked
from tidemill.domain.job import Job
from tidemill.system import clock

#: A job's id is a UUID, which is never cut.
_ID_WIDTH: Final = 36
#: A terminal less wide has no room for anything beside the ids.
_NARROWEST: Final = 64


def list_dead(installation: Installation, types: Sequence[str], *, as_json: bool) -> None:
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
