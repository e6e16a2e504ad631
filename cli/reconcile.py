"""`millrace reconcile`: dispatch jobs again whose message was lost."""

from collections import Counter
from datetime import timedelta

import click

from cli.installation import Installation
from cli.progress import bar
from cli.screen import show
from cli.wording import count
from shared.adapters import clock
from shared.application.reconcile import Reconciler


@click.command()
@click.option(
    "--overdue-by",
    "minutes",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    metavar="MINUTES",
    help="Leave jobs alone that are late by less, or that were nudged within this time.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@click.pass_obj
def reconcile(installation: Installation, *, minutes: int, dry_run: bool) -> None:
    """Dispatch live jobs again that should have run long ago.

    Reads the whole table. A job whose message was lost on the way, say because publish could not take its record for
    hours, has no other way to run. One that is only late gets a second message, which does no harm: choose MINUTES
    above the age of the oldest message (`millrace status`) to spare those.

    Safe to repeat, and to run while everything else runs.
    """
    reconciler = Reconciler(store=installation.store, clock=clock.now, limit=timedelta(minutes=minutes))
    overdue = list(reconciler.overdue())
    for (lane, state), number in sorted(Counter((job.lane, job.state) for job in overdue).items()):
        show(f"{lane}: {count(number, 'overdue job')} {state}")
    if dry_run or not overdue:
        show("Nothing was changed." if overdue else "No job is overdue.")
        return
    nudged = 0
    with bar("nudging", len(overdue)) as advance:
        for job in overdue:
            nudged += reconciler.nudge(job)
            advance()
    show(f"Nudged {nudged} of {count(len(overdue), 'job')}.")
