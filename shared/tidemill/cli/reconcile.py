"""`tidemill reconcile`: look after what was left behind."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import click

from tidemill.application.ports import Found, PayloadItem, TableScan
from tidemill.application.reconcile import SEGMENTS, Act, Reconciled, Reconciler
from tidemill.cli.errors import ExplainedError
from tidemill.cli.formatting import count, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import progress_bar, say, show
from tidemill.names import Lane
from tidemill.system import clock

#: What each act comes to, in the order shown, with its noun.
_DONE: Final = (
    (Act.NUDGED, "job", "nudged"),
    (Act.WOKEN, "job", "woken"),
    (Act.UNDELIVERABLE, "job", "given up as undeliverable"),
    (Act.ADVANCED, "group", "moved on"),
    (Act.DISCARDED, "payload", "deleted that belonged to no job"),
)


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
@click.option("--dry-run", is_flag=True, help="Count the jobs that would be nudged, and change nothing.")
@click.pass_obj
def reconcile(installation: Installation, *, minutes: int, dry_run: bool) -> None:
    """Look after what was left behind.

    Does at once what is done each night. Reads the whole table. Live jobs that should have run long ago are dispatched
    again (nudged): one whose message was lost on the way has no other way to run. What waits on its lane for its turn
    is not late, however long that takes. Groups whose head has ended go on, payloads that belong to no job are deleted,
    and the dead-letter queues tidied.

    Safe to repeat, and to run while everything else runs.
    """
    reconciler = installation.reconciler(timedelta(minutes=minutes))
    if dry_run:
        _count(reconciler)
        return
    boxes = {Lane(lane): installation.dead_letter_queue(lane) for lane in installation.deployment.lanes}
    with progress_bar("reading", SEGMENTS) as advance:
        done = reconciler.run(
            _Watched(installation.table_scan, advance), boxes, draw=clock.draw, time_left=lambda: timedelta.max
        )
    _show(done)


class _Watched:
    """A `TableScan` that says when a part has been read."""

    def __init__(self, table_scan: TableScan, advance: Callable[[], object]) -> None:
        self._survey = table_scan
        self._advance = advance

    def segment(self, number: int, *, of: int, overdue_since: datetime) -> Iterator[Sequence[Found]]:
        yield from self._survey.segment(number, of=of, overdue_since=overdue_since)
        self._advance()

    def discard(self, payload: PayloadItem) -> None:
        self._survey.discard(payload)


def _count(reconciler: Reconciler) -> None:
    overdue = Counter((job.lane, job.state) for job in reconciler.overdue())
    for (lane, state), number in sorted(overdue.items()):
        show(f"{lane}: {count(number, 'overdue job')} {state}")
    show("Nothing was changed." if overdue else "No job is overdue.")


def _show(done: Reconciled) -> None:
    acts = [(number, noun, what) for act, noun, what in _DONE if (number := done.count(act))]
    for number, noun, what in acts:
        show(f"{count(number, noun)} {what}.")
    if not acts:
        show("Nothing was left behind.")
    dead_letters = done.dead_letters.values()
    show(
        f"Letters: {sum(one.outdated for one in dead_letters)} deleted, "
        f"{sum(one.nudged for one in dead_letters)} nudged, {sum(one.kept for one in dead_letters)} kept."
    )
    for item in done.unreadable:
        say(f"Passed over {visible(item.key)}: {visible(str(item.error))}", style="bold yellow")
    if left := done.count(Act.FAILED) + done.count(Act.UNFINISHED):
        raise ExplainedError(
            f"{count(left, 'part')} of the work could not be done: the table did not answer, or others were at it",
            remedy="Run the command again; it takes up what is left.",
        )
