"""`tidemill purge`: have the table forget finished jobs before their time."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import click

from tidemill.application.purge import Purge
from tidemill.cli.confirm import confirmed, require_somebody
from tidemill.cli.dead_job_report import ended_at
from tidemill.cli.errors import tell_unreadable
from tidemill.cli.formatting import count, instant
from tidemill.cli.installation import Installation
from tidemill.cli.output import progress_bar, say, show, show_table
from tidemill.cli.parallel_writes import AtOnce
from tidemill.cli.parameter_types import SPAN
from tidemill.domain.job import Job
from tidemill.domain.states import TERMINAL, State
from tidemill.system import clock

_STATES: Final = click.Choice(sorted(map(str, TERMINAL)))


@click.command()
@click.option("--older-than", type=SPAN, required=True, metavar="SPAN", help="Jobs that ended longer ago: 12h, 30d.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Jobs of this type; may be given again.")
@click.option("--state", "states", multiple=True, type=_STATES, help="Jobs in this state; may be given again.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def purge(
    installation: Installation,
    *,
    older_than: timedelta,
    types: tuple[str, ...],
    states: tuple[str, ...],
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete finished jobs of all tenants before their time.

    Reads the whole table. Jobs that live on are never deleted. What is deleted cannot be redriven, and its idempotency
    key is forgotten: whoever submits with it again makes a new job.

    Safe to repeat, and to run twice at once.
    """
    require_somebody(yes=yes or dry_run, instead=", or --dry-run to see what would be done")
    asked = Purge(states=[State(state) for state in states], types=types, ended_before=clock.now() - older_than)
    jobs = list(installation.purger.plan(asked, unreadable=tell_unreadable))
    _present(jobs, dry_run=dry_run)
    if dry_run or not jobs:
        show("Nothing was changed.")
        return
    if confirmed(f"Delete {count(len(jobs), 'job')}?", yes=yes):
        _carry_out(installation, jobs)


def _present(jobs: Sequence[Job], *, dry_run: bool) -> None:
    """On stdout if it is all there will be, else on stderr."""
    put = show if dry_run else say
    put(f"{count(len(jobs), 'job')} to delete" + (":" if jobs else "."))
    if jobs:
        counts = Counter((job.type, str(job.state)) for job in jobs)
        rows = [(type_, state, str(number)) for (type_, state), number in sorted(counts.items())]
        show_table(("TYPE", "STATE", "JOBS"), rows, numbers=[2], stderr=not dry_run)
        ends = sorted(map(ended_at, jobs))
        put(f"They ended between {instant(ends[0])} and {instant(ends[-1])}.")


def _carry_out(installation: Installation, jobs: Sequence[Job]) -> None:
    purging = AtOnce(installation.purger.purge, jobs, done="Deleted")
    try:
        with progress_bar("deleting", len(jobs)) as advance:
            purging.run(advance)
    except BaseException:
        say(f"{purging.summary} Run the command again to go on.")
        raise
    show(purging.summary)
