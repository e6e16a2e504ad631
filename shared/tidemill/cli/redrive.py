"""`tidemill redrive`: requeue dead jobs, and process the messages in the dead-letter queues."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial

import click

from tidemill.application.ports import DeadLetterQueue, ReceivedDeadLetter
from tidemill.application.redrive import Selection
from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.dead_job_report import ended_at
from tidemill.cli.errors import CommandError, report_unreadable
from tidemill.cli.formatting import count, sweep_counts, sweep_text, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import progress_bar, say, show, show_json
from tidemill.cli.own_jobs import change_own_jobs
from tidemill.cli.parallel_writes import ParallelWrites, in_order
from tidemill.cli.parameter_types import reason_text
from tidemill.cli.redrive_plan import Plan
from tidemill.domain.job import Job
from tidemill.domain.states import State


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Jobs of this type; repeatable.")
@click.option("--all", "everything", is_flag=True, help="All dead jobs.")
@click.option("--own", is_flag=True, help="Your own jobs, by ID, over the HTTP API.")
@click.option("--reason", default="", callback=reason_text, metavar="TEXT", help="Why, for the history of the jobs.")
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON object; with --own, each job as a line."
)
@click.pass_obj
def redrive(
    installation: Installation,
    ids: tuple[str, ...],
    types: tuple[str, ...],
    *,
    everything: bool,
    own: bool,
    reason: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Requeue dead jobs with a fresh set of attempts.

    Without --own, this command is for operators and works on the jobs of all tenants. Select the jobs by ID, by --type
    (a job must match both if both are given), or with --all. Afterwards the command processes every dead-letter queue.
    It deletes the messages of jobs that have moved on. It dispatches jobs again (nudges them) that no worker ever
    started. It keeps the messages of dead or running jobs.

    With --own, it requeues your own dead jobs by ID, and leaves the dead-letter queues unchanged.

    Each job records who redrove it, as AWS STS verifies it, and the --reason.

    Jobs of one group are requeued in their order. Safe to repeat and to run concurrently. After an interruption, each
    job is either dead or redriven.
    """
    if own:
        if not ids or types or everything or dry_run or reason:
            raise click.UsageError(
                "--own requires IDs, and cannot be combined with --type, --all, --dry-run or --reason"
            )
        change_own_jobs(installation, ids, "redrive", yes=yes, as_json=as_json)
        return
    _check_selection(selected=bool(ids or types), everything=everything)
    require_confirmation(yes=yes or dry_run, alternative=", or --dry-run to see the plan")
    plan = _plan(installation, Selection(ids=ids, types=types))
    if dry_run and as_json:
        show_json(plan.as_json())
        return
    plan.show(dry_run=dry_run)
    if missing := sorted(set(ids) - {job.id for job in plan.jobs}):
        _say_missing(installation, missing)
    if absent := sorted(set(types) - {job.type for job in plan.jobs}):
        dead = {job.type for job in installation.redriver.plan(Selection(ids=ids))}
        say(f"No dead job to redrive has the type {', '.join(absent)}. The dead jobs have: {_listed(dead)}.")
    if dry_run:
        show("Nothing was changed.")
        return
    if plan.empty and not yes:
        say("Nothing was changed.")
        return
    if not confirmed(plan.question, yes=yes):
        return
    _carry_out(installation, plan, reason=reason, as_json=as_json)
    if ids and not plan.jobs:
        raise CommandError("these IDs match no dead job", remedy="`tidemill dlq list` lists the dead jobs.")


def _say_missing(installation: Installation, ids: Sequence[str]) -> None:
    types = {job.id: job.type for job in installation.redriver.plan(Selection(ids=ids))}
    for job_id in ids:
        _say_skipped(job_id, f"its type is {types[job_id]}" if job_id in types else "no dead job has this ID")


def _say_why(job: Job, current: Job | None) -> None:
    """Say why a job was not redriven. It has changed since it was read."""
    if current is None or current.created_at != job.created_at:
        why = "it has been deleted in the meantime"
    elif current.redrives != job.redrives:
        why = f"{current.redrives[-1].by} has redriven it in the meantime"
    elif current.state is State.DEAD:
        why = "it has expired" if current.generation == job.generation else "it has died again in the meantime"
    else:
        why = f"it is {current.state} now"
    _say_skipped(job.id, why)


def _say_skipped(job_id: str, why: str) -> None:
    say(visible(f"Skipped {job_id}: {why}"))


def _listed(types: Iterable[str]) -> str:
    return ", ".join(map(visible, sorted(types))) or "nothing, because no job is dead"


def _check_selection(*, selected: bool, everything: bool) -> None:
    if not selected and not everything:
        raise click.UsageError("select jobs: give IDs, --type TYPE or --all")
    if selected and everything:
        raise click.UsageError("--all selects every dead job: drop it, or drop the IDs and --type")


def _plan(installation: Installation, selection: Selection) -> Plan:
    dead = installation.redriver.plan(selection, unreadable=report_unreadable)
    return Plan(
        jobs=sorted(dead, key=lambda job: (ended_at(job), job.id)),
        dlq_messages={lane: installation.dlq_messages(lane) for lane in installation.deployment.lanes},
    )


def _carry_out(installation: Installation, plan: Plan, *, reason: str, as_json: bool) -> None:
    redriver = installation.redriver
    write = partial(redriver.redrive, by=installation.caller, reason=reason, refused=_say_why)
    writes = ParallelWrites(write, in_order(plan.jobs), verb="Redrove")
    try:
        with progress_bar("redriving", len(plan.jobs)) as advance:
            writes.run(advance)
        with progress_bar("DLQ messages", sum(plan.dlq_messages.values())) as advance:
            swept = [
                redriver.sweep(_QueueWithProgress(installation.dead_letter_queue(lane), advance))
                for lane in installation.deployment.lanes
            ]
    except BaseException:
        say(
            f"{writes.summary} Each job is either dead or redriven. "
            "Run the command again to continue; it also processes the dead-letter queues."
        )
        raise
    if as_json:
        show_json(writes.counts | {"dlq_messages": sweep_counts(swept)})
    else:
        show(writes.summary)
        show(sweep_text(swept))
    for job in writes.left:
        _say_skipped(job.id, f"other writes keep its group {job.group} busy")
    if writes.left:
        raise CommandError(
            f"{count(len(writes.left), 'job')} of busy groups could not be redriven", remedy="Run the command again."
        )


class _QueueWithProgress:
    """A `DeadLetterQueue` that calls `advance` for each message received."""

    def __init__(self, queue: DeadLetterQueue, advance: Callable[[], object]) -> None:
        self._queue = queue
        self._advance = advance

    def receive(self, *, hidden_for: timedelta) -> Sequence[ReceivedDeadLetter]:
        dead_letters = self._queue.receive(hidden_for=hidden_for)
        for _ in dead_letters:
            self._advance()
        return dead_letters

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None:
        self._queue.delete(dead_letters)

    def hide(self, dead_letters: Sequence[ReceivedDeadLetter], *, duration: timedelta) -> None:
        self._queue.hide(dead_letters, duration=duration)
