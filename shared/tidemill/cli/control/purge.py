"""`tidemill purge`: delete finished jobs before they expire."""

from datetime import timedelta
from typing import Final

import click

from tidemill.application.job_filter import JobFilter
from tidemill.cli.control.bulk_change import BulkChange
from tidemill.cli.control.change_options import ChangeOptions, change_options
from tidemill.cli.control.job_filter_options import job_filter_options, write_pace_options
from tidemill.cli.control.scanned_jobs import scanned_jobs
from tidemill.cli.control.unreadable_jobs import UnreadableJobs
from tidemill.cli.formatting import count
from tidemill.cli.installation import Installation
from tidemill.cli.options import read_units_option
from tidemill.cli.output import say
from tidemill.cli.parameter_types import DURATION
from tidemill.domain.records import replace
from tidemill.domain.states import TERMINAL, State
from tidemill.system import clock

_STATES: Final = click.Choice(sorted(map(str, TERMINAL)))


@click.command()
@job_filter_options
@click.option(
    "--older-than", type=DURATION, required=True, metavar="DURATION", help="Jobs that ended longer ago: 12h, 30d."
)
@click.option("--state", "states", multiple=True, type=_STATES, help="Only jobs in this state; repeatable.")
@write_pace_options
@read_units_option()
@change_options(json="Print the plan or the result as one JSON object.")
@click.pass_obj
def purge(
    installation: Installation,
    *,
    wanted: JobFilter,
    older_than: timedelta,
    states: tuple[str, ...],
    limit: int | None,
    rate: int | None,
    read_units: int,
    how: ChangeOptions,
) -> None:
    """Delete finished jobs of all tenants before they expire.

    Scans the whole table, at a limited rate. A job must match all options. Live jobs are never deleted. A deleted job
    cannot be redriven. Its idempotency key is forgotten: a submission with the same key creates a new job.

    Kept are the jobs that others need: the nodes of a flow and the members of a batch that are live or dead, unique
    jobs until their period ends, and jobs whose correction or undo is live or dead.

    Safe to repeat and to run concurrently. `tidemill audit` shows who purged what.
    """
    how.require_confirmation()
    before = clock.now() - older_than
    chosen = tuple(map(State, states)) or tuple(sorted(TERMINAL))
    wanted = replace(wanted, states=chosen, ended_until=min(before, wanted.ended_until or before))
    change = BulkChange(name="purge", action="delete", verb="Deleted", wanted=wanted, limit=limit, rate=rate, how=how)
    kept: list[str] = []
    unreadable = UnreadableJobs()
    found = scanned_jobs(installation, wanted, read_units, unreadable.item)
    unneeded = installation.purger.without_needed(found, kept=lambda job: kept.append(job.id))
    try:
        change.run(installation, unneeded, installation.purger.purge, unreadable=unreadable)
    finally:
        if kept:
            say(f"Kept {count(len(kept), 'job')} that a flow, a batch, a correction, an undo or a unique period needs.")
