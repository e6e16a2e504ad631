"""`tidemill reconcile`: scan the table, and repair jobs, groups and payloads that nothing else will reach."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import click

from tidemill.application.ports import Found, PayloadItem, TableScan
from tidemill.application.reconcile import SEGMENTS, Reconciled, Reconciler, RepairAction
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, sweep_text, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import progress_bar, say, show
from tidemill.names import Lane
from tidemill.system import random_draw

#: The noun and the verb that report each action, in the order shown.
_REPORTED_ACTIONS: Final = (
    (RepairAction.NUDGED, "job", "nudged"),
    (RepairAction.WOKEN, "scheduled job", "woken"),
    (RepairAction.UNDELIVERABLE, "job", "marked dead as undeliverable"),
    (RepairAction.ADVANCED, "group", "advanced"),
    (RepairAction.DISCARDED, "orphaned payload", "deleted"),
)


@click.command()
@click.option(
    "--overdue-by",
    "minutes",
    type=click.IntRange(min=1),
    default=60,
    show_default=True,
    metavar="MINUTES",
    help="Skip jobs that are overdue by less, or that were nudged within this time.",
)
@click.option("--dry-run", is_flag=True, help="Count the jobs that would be nudged and change nothing.")
@click.pass_obj
def reconcile(installation: Installation, *, minutes: int, dry_run: bool) -> None:
    """Repair jobs, groups and payloads that nothing else will reach.

    Does immediately what the nightly run does. Scans the whole table. Dispatches overdue live jobs again (nudges them):
    a job whose message was lost has no other way to run. A job that waits for its turn on a slow lane is not overdue.
    Advances groups whose head has ended, deletes payloads that belong to no job, and processes the dead-letter queues
    as `tidemill redrive` does.

    Safe to repeat and to run at any time.
    """
    reconciler = installation.reconciler(timedelta(minutes=minutes))
    if dry_run:
        _show_overdue(reconciler)
        return
    queues = {Lane(lane): installation.dead_letter_queue(lane) for lane in installation.deployment.lanes}
    with progress_bar("scanning", SEGMENTS) as advance:
        done = reconciler.run(
            _ScanWithProgress(installation.table_scan, advance),
            queues,
            draw=random_draw.draw,
            time_left=lambda: timedelta.max,
        )
    _show_result(done)


class _ScanWithProgress:
    """A `TableScan` that calls `advance` after each segment."""

    def __init__(self, table_scan: TableScan, advance: Callable[[], object]) -> None:
        self._table_scan = table_scan
        self._advance = advance

    def segment(self, number: int, *, of: int, overdue_since: datetime) -> Iterator[Sequence[Found]]:
        yield from self._table_scan.segment(number, of=of, overdue_since=overdue_since)
        self._advance()

    def discard(self, payload: PayloadItem) -> None:
        self._table_scan.discard(payload)


def _show_overdue(reconciler: Reconciler) -> None:
    overdue = Counter((job.lane, job.state) for job in reconciler.overdue())
    for (lane, state), number in sorted(overdue.items()):
        show(f"{lane}: {count(number, 'overdue job')} in state {state}")
    show("Nothing was changed." if overdue else "No overdue jobs.")


def _show_result(done: Reconciled) -> None:
    actions = [(number, noun, verb) for action, noun, verb in _REPORTED_ACTIONS if (number := done.count(action))]
    for number, noun, verb in actions:
        show(f"{count(number, noun)} {verb}.")
    if not actions:
        show("Nothing to repair.")
    show(sweep_text(done.dead_letters.values()))
    for item in done.unreadable:
        say(f"Skipped {visible(item.key)}: {visible(str(item.error))}", style="bold yellow")
    if failed := done.count(RepairAction.FAILED) + done.count(RepairAction.UNFINISHED):
        raise CommandError(
            f"{count(failed, 'step')} failed: the table or a queue did not respond, or a write conflicted",
            remedy="Run the command again; it repairs what is left.",
        )
