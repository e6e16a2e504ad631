"""`tidemill redrive`: requeue dead jobs."""

from collections.abc import Collection
from datetime import timedelta
from itertools import islice
from typing import Final

import click

from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.cli.control.change_options import ChangeOptions, change_options
from tidemill.cli.control.job_filter_options import as_options, job_filter_options, write_pace_options
from tidemill.cli.control.own_jobs import change_own_jobs
from tidemill.cli.control.redrive_payload import redrive_with_payload
from tidemill.cli.control.redrive_plan import MOST_PLANNED, Plan
from tidemill.cli.control.redrive_run import RedriveRun, Request, say_skipped
from tidemill.cli.control.unreadable_jobs import UnreadableJobs
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import visible
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import given
from tidemill.cli.output import say, show, show_json
from tidemill.cli.parameter_types import DURATION

#: The parameters of the form for the caller's own jobs.
_OF_OWN: Final = frozenset({"ids", "own", "yes", "as_json"})


@click.command()
@job_filter_options
@click.option("--all", "everything", is_flag=True, help="All dead jobs.")
@write_pace_options
@click.option("--no-probe", is_flag=True, help="Redrive all jobs at once, without probes.")
@click.option(
    "--probe-timeout",
    type=DURATION,
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="Wait so long for probes.",
)
@click.option("--payload", metavar="JSON|-|@FILE", help="Another payload for the one job of ID.")
@click.option("--own", is_flag=True, help="Your own jobs, by ID, over the HTTP API.")
@change_options(
    reason="Why, for the history of the jobs and the audit entry.",
    json="Print the result as one JSON object; with --own, each job as a line.",
)
@click.pass_obj
def redrive(
    installation: Installation,
    *,
    wanted: JobFilter,
    everything: bool,
    limit: int | None,
    rate: int | None,
    no_probe: bool,
    probe_timeout: timedelta,
    payload: str | None,
    own: bool,
    how: ChangeOptions,
) -> None:
    """Requeue dead jobs with a fresh set of attempts.

    The earliest death comes first.

    Without --own, this command is for operators and works on the jobs of all tenants. Select the jobs by ID and by the
    options, all of which a job must match, or with --all. TIME is a duration before now, such as 2h, or a timestamp.

    The command reads and writes job documents only. The messages of these jobs in the dead-letter queues do no harm;
    reconcile deletes them within minutes, and `tidemill dlq sweep` does so now.

    If several jobs match, one job of each type and error runs first, as a probe. The others of that error follow only
    if their probe succeeds in time; else they stay dead, and the exit code is 1. A probe has failed as soon as an
    attempt fails with the same error. An interruption does not stop probes: they are redriven jobs like all others.

    --payload replaces the payload of one dead job. The deployed model of its type must accept it, or nothing is
    changed. The job keeps its id and its idempotency key. Its steps, checkpoint, progress and signals were for the
    other payload: they are dropped, so an approval must be given again.

    With --own, it requeues your own dead jobs by ID.

    Each job records who redrove it, as AWS STS verifies it, and the --reason. `tidemill audit` lists the commands.

    Jobs of one group are requeued in their order. Safe to run concurrently. After an interruption, each job is either
    dead or redriven: run the command again, and it continues with those that are still dead.
    """
    if own:
        if not wanted.ids or given() - _OF_OWN:
            raise click.UsageError("--own requires IDs, and takes no other option than --yes and --json")
        change_own_jobs(installation, list(wanted.ids), "redrive", yes=how.yes, as_json=how.as_json)
        return
    _check_selection(selected=wanted != ANY_JOB, everything=everything)
    how.require_confirmation()
    if payload is not None:
        if len(set(wanted.ids)) != 1 or wanted != JobFilter(ids=wanted.ids, tenant=wanted.tenant) or limit or rate:
            raise click.UsageError("--payload requires one ID, and takes no other selection than --tenant")
        redrive_with_payload(installation, wanted, payload, how)
        return
    unreadable = UnreadableJobs()
    plan = Plan.of(installation.redriver.dead_jobs(wanted, unreadable=unreadable.job), limit=limit)
    if how.dry_run and how.as_json:
        show_json(plan.as_json())
        return
    plan.show(dry_run=how.dry_run)
    _say_unmatched(installation, wanted, plan, unreadable)
    if how.dry_run:
        show("Nothing was changed.")
        return
    if plan.jobs and how.confirmed(f"Redrive {plan.number}?"):
        request = Request(
            wanted=wanted, limit=limit, rate=rate, reason=how.reason, probe_timeout=None if no_probe else probe_timeout
        )
        run = RedriveRun(installation, request, plan, unreadable=unreadable)
        options = as_options(wanted, limit=limit, rate=rate, no_probe=no_probe)
        with audited(installation, "redrive", options=options, counts=lambda: run.numbers, reason=how.reason):
            run.run()
            show_json(run.counts) if how.as_json else show(run.summary)
            run.raise_for_rest()
    elif not plan.jobs:
        nothing = {"written": 0, "skipped": 0, "left": []} | unreadable.counts
        show_json(nothing) if how.as_json else show("Nothing was changed.")
        unreadable.raise_for_any()
    if wanted.ids and not plan.jobs:
        raise CommandError("these IDs match no dead job", remedy="`tidemill dlq list` lists the dead jobs.")


def _check_selection(*, selected: bool, everything: bool) -> None:
    if not selected and not everything:
        raise click.UsageError("select jobs: give IDs, an option such as --type TYPE, or --all")
    if selected and everything:
        raise click.UsageError("--all selects every dead job: drop it, or drop the IDs and the other options")


def _say_unmatched(installation: Installation, wanted: JobFilter, plan: Plan, unreadable: UnreadableJobs) -> None:
    """Name the IDs and types of the command without a job to redrive."""
    dead = installation.redriver.dead_jobs
    if wanted.ids and plan.jobs < len(set(wanted.ids)):
        matched = {job.id for job in dead(wanted)}
        others = {job.id for job in dead(JobFilter(ids=wanted.ids))} - matched
        for job_id in sorted({each for each in wanted.ids if each not in unreadable} - matched):
            say_skipped(job_id, "the other options exclude it" if job_id in others else "no dead job has this ID")
    elif wanted.types and not plan.jobs:
        types = {job.type for job in islice(dead(ANY_JOB), MOST_PLANNED)}
        if absent := sorted(set(wanted.types) - types):
            say(f"No dead job has the type {_listed(absent)}. The dead jobs have: {_listed(types)}.")


def _listed(types: Collection[str]) -> str:
    return ", ".join(map(visible, sorted(types))) or "nothing, because no job is dead"
