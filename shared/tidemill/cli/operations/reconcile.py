"""`tidemill reconcile`: scan the table, and repair jobs, groups and payloads that nothing else will reach."""

import time
from collections import Counter
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import click

from tidemill.application.dispatch.dead_letter_sweep import WHOLE
from tidemill.application.dispatch.owed import OwedResult
from tidemill.application.operations.reconcile import Reconciled, Reconciler
from tidemill.application.passes.pace import Pace
from tidemill.application.passes.pass_state import SEGMENTS
from tidemill.application.passes.table_pass import RESERVE, TablePasses
from tidemill.application.ports import UnreadableItem
from tidemill.cli.errors import CommandError, report_unreadable
from tidemill.cli.formatting import count, readable_time, sweep_counts, sweep_text, visible
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import json_option, read_units_option, reason_option
from tidemill.cli.output import progress_bar, say, show, show_json
from tidemill.domain.operations.repair_actions import RepairAction
from tidemill.names import Lane
from tidemill.system import clock

#: One round of work on the pass, after which the progress is shown.
_ROUND: Final = timedelta(seconds=15) + RESERVE
#: The pause before a look at a pass that another run works on.
_BUSY_SECONDS: Final = 5.0
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
@read_units_option("Read units per second that the scan may take from the table.")
@reason_option()
@click.option("--dry-run", is_flag=True, help="Count the jobs that would be nudged and change nothing.")
@json_option("Print the result as one JSON object.")
@click.pass_obj
def reconcile(
    installation: Installation, *, minutes: int, read_units: int, reason: str, dry_run: bool, as_json: bool
) -> None:
    """Repair jobs, groups and payloads that nothing else will reach.

    Does the owed work of publish. Processes the dead-letter queues as `tidemill dlq sweep` does. Then continues the
    open pass over the whole table, or begins one. Dispatches overdue live jobs again (nudges them): a job whose message
    was lost has no other way to run. A job that waits for its turn on a slow lane is not overdue. Advances groups whose
    head has ended, and deletes payloads that belong to no job.

    Safe to repeat, to interrupt and to run at any time. After an interruption the same command, or the scheduled
    function, continues the pass. If the function is working on it, this command waits for it. `tidemill audit` shows
    who ran it.
    """
    reconciler = installation.reconciler(timedelta(minutes=minutes), installation.deployment.lanes.get)
    if dry_run:
        if not _show_overdue(reconciler, installation.pace(read_units), as_json=as_json):
            _say_skipped(minutes)
        return
    actions: Counter[tuple[RepairAction, Lane | None]] = Counter()

    def counts() -> dict[str, int]:
        return {action.value: Reconciled(actions=actions).count(action) for action in RepairAction}

    options = {"overdue_by_minutes": minutes, "read_units": read_units}
    with audited(installation, "reconcile", options=options, counts=counts, reason=reason):
        _repair(installation, reconciler, actions, read_units=read_units, as_json=as_json)
    if not counts()[RepairAction.NUDGED]:
        _say_skipped(minutes)


def _say_skipped(minutes: int) -> None:
    """After a loss, a job that was not nudged may just not be overdue enough."""
    if minutes > 1:
        say(f"Jobs overdue by less than {minutes} minutes were skipped; --overdue-by 1 includes them.")


def _repair(
    installation: Installation,
    reconciler: Reconciler,
    actions: Counter[tuple[RepairAction, Lane | None]],
    *,
    read_units: int,
    as_json: bool,
) -> None:
    """Adds to `actions` what is done, also if it is interrupted."""
    actions += _actions(installation.owed_runner.run_pending(lambda: True))
    queues = {Lane(lane): installation.dead_letter_queue(lane) for lane in installation.deployment.lanes}
    swept = reconciler.sweep(queues, time_left=lambda: timedelta.max, bounds=WHOLE)
    actions += swept.actions
    passes = installation.table_passes(read_units)
    found = passes.find()
    number = found.number if found else 1
    if found and found.open:
        say(f"Continuing pass {number}, which began {readable_time(found.began_at)}.")
    elif found:
        passes.ask()
        number += 1
    try:
        unreadable = _complete(reconciler, passes, actions, number=number)
    except KeyboardInterrupt:
        say("The pass is not complete. Run the command again to continue, or leave it to the scheduled function.")
        raise
    found_unreadable = (*swept.unreadable, *unreadable)
    _show_result(Reconciled(actions=actions, unreadable=found_unreadable), swept, as_json=as_json)


def _complete(
    reconciler: Reconciler, passes: TablePasses, actions: Counter[tuple[RepairAction, Lane | None]], *, number: int
) -> list[UnreadableItem]:
    """Work on the pass with this number in short rounds, to show the progress, until it ends or a part of it fails.

    Adds to `actions`.
    """
    unreadable: list[UnreadableItem] = []
    shown = 0
    with progress_bar("segments", SEGMENTS) as advance:
        while True:
            done = reconciler.run(passes, time_left=partial(_until, clock.now() + _ROUND))
            actions += done.actions
            unreadable += done.unreadable
            progress = done.progress
            # Another pass may have begun after the end of this one, while another run worked.
            if progress is None or progress.table_pass.number != number or progress.failed:
                break
            for _ in range(shown, progress.done):
                advance()
            shown = max(shown, progress.done)
            if not progress.table_pass.open:
                break
            if progress.busy:
                time.sleep(_BUSY_SECONDS)
    return unreadable


def _until(end: datetime) -> timedelta:
    return end - clock.now()


def _actions(result: OwedResult) -> Counter[tuple[RepairAction, Lane | None]]:
    """The owed work that was done, as repairs. A message that was sent again counts as a nudge."""
    actions: Counter[tuple[RepairAction, Lane | None]] = Counter()
    actions.update((RepairAction.ADVANCED, job.lane) for job in result.advanced)
    actions.update((RepairAction.NUDGED, job.lane) for job in result.resent)
    if not result.finished:
        actions[RepairAction.FAILED, None] += 1
    for owed in result.overdue:
        say(
            f"Owed since {readable_time(owed.since)}: {owed.work.kind} {visible(owed.work.name)}: {visible(owed.error)}"
        )
    return actions


def _show_overdue(reconciler: Reconciler, reads: Pace, *, as_json: bool) -> bool:
    """Whether any job is."""
    found = reconciler.overdue(unreadable=report_unreadable, spend=partial(reads.spend, within=timedelta.max))
    overdue = Counter((job.lane, job.state) for job in found)
    if as_json:
        groups = [{"lane": lane, "state": state, "jobs": jobs} for (lane, state), jobs in sorted(overdue.items())]
        show_json({"overdue": groups})
        return bool(overdue)
    for (lane, state), number in sorted(overdue.items()):
        show(f"{lane}: {count(number, 'overdue job')} in state {state}")
    show("Nothing was changed." if overdue else "No overdue jobs.")
    return bool(overdue)


def _show_result(done: Reconciled, swept: Reconciled, *, as_json: bool) -> None:
    actions = [(number, noun, verb) for action, noun, verb in _REPORTED_ACTIONS if (number := done.count(action))]
    if as_json:
        counts = {action.value: done.count(action) for action in RepairAction}
        show_json(counts | {"dlq_messages": sweep_counts(swept.dead_letters.values())})
    else:
        for number, noun, verb in actions:
            show(f"{count(number, noun)} {verb}.")
        if not actions:
            show("Nothing to repair.")
        show(sweep_text(swept.dead_letters.values()))
    for item in done.unreadable:
        say(f"Skipped {visible(item.key)}: {visible(str(item.error))}", style="bold yellow")
    if failed := done.count(RepairAction.FAILED):
        raise CommandError(
            f"{count(failed, 'step')} failed: the table or a queue did not respond, or a write conflicted",
            remedy="Run the command again; it continues the pass.",
        )
