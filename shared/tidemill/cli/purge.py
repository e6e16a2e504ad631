"""`tidemill purge`: delete finished jobs before they expire."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import click

from tidemill.application.purge import Purge
from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.dead_job_report import ended_at
from tidemill.cli.errors import CommandError, report_unreadable
from tidemill.cli.formatting import count, readable_time
from tidemill.cli.installation import Installation
from tidemill.cli.output import progress_bar, say, show, show_json, show_table
from tidemill.cli.parallel_writes import ParallelWrites
from tidemill.cli.parameter_types import DURATION
from tidemill.domain.job import Job
from tidemill.domain.states import TERMINAL, State
from tidemill.system import clock

#: The result for a program, as `ParallelWrites.counts`.
_NOTHING: Final[dict[str, object]] = {"written": 0, "skipped": 0, "left": []}
_STATES: Final = click.Choice(sorted(map(str, TERMINAL)))


@click.command()
@click.option(
    "--older-than", type=DURATION, required=True, metavar="DURATION", help="Jobs that ended longer ago: 12h, 30d."
)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only jobs of this type; repeatable.")
@click.option("--state", "states", multiple=True, type=_STATES, help="Only jobs in this state; repeatable.")
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print the plan or the result as one JSON object.")
@click.pass_obj
def purge(
    installation: Installation,
    *,
    older_than: timedelta,
    types: tuple[str, ...],
    states: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete finished jobs of all tenants before they expire.

    Scans the whole table. Live jobs are never deleted. A deleted job cannot be redriven. Its idempotency key is
    forgotten: a submission with the same key creates a new job.

    Safe to repeat and to run concurrently.
    """
    require_confirmation(yes=yes or dry_run, alternative=", or --dry-run to see the plan")
    selection = Purge(states=[State(state) for state in states], types=types, ended_before=clock.now() - older_than)
    jobs = list(installation.purger.plan(selection, unreadable=report_unreadable))
    if as_json and (dry_run or not jobs):
        show_json({"jobs": len(jobs)} if dry_run else _NOTHING)
        return
    _show_plan(jobs, dry_run=dry_run)
    if dry_run or not jobs:
        show("Nothing was changed.")
        return
    if confirmed(f"Delete {count(len(jobs), 'job')}?", yes=yes):
        _delete(installation, jobs, as_json=as_json)


def _show_plan(jobs: Sequence[Job], *, dry_run: bool) -> None:
    """Print to stdout in a dry run, where the plan is the result, and to stderr otherwise."""
    put = show if dry_run else say
    put(f"{count(len(jobs), 'job')} to delete" + (":" if jobs else "."))
    if jobs:
        counts = Counter((job.type, str(job.state)) for job in jobs)
        rows = [(type_, state, str(number)) for (type_, state), number in sorted(counts.items())]
        show_table(("TYPE", "STATE", "JOBS"), rows, numbers=[2], stderr=not dry_run)
        ends = sorted(map(ended_at, jobs))
        put(f"They ended between {readable_time(ends[0])} and {readable_time(ends[-1])}.")


def _delete(installation: Installation, jobs: Sequence[Job], *, as_json: bool) -> None:
    writes = ParallelWrites(installation.purger.purge, verb="Deleted")
    try:
        with progress_bar("deleting", len(jobs)) as advance:
            writes.run(jobs, advance)
    except BaseException:
        say(f"{writes.summary} Run the command again to continue.")
        raise
    if as_json:
        show_json(writes.counts)
    else:
        show(writes.summary)
    if writes.left_count:
        raise CommandError("some groups are busy, and may wait for deleted jobs", remedy="Run `tidemill reconcile`.")
