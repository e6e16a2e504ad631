"""`tidemill cancel`: cancel the caller's own jobs over the HTTP API, or those of any tenant in the table."""

from typing import Final

import click

from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.cli.control.bulk_change import BulkChange
from tidemill.cli.control.change_options import ChangeOptions, change_options
from tidemill.cli.control.job_filter_options import as_options, job_filter_options, write_pace_options
from tidemill.cli.control.own_jobs import change_jobs, change_own_jobs
from tidemill.cli.control.scanned_jobs import scanned_jobs
from tidemill.cli.control.unreadable_jobs import UnreadableJobs
from tidemill.cli.explain.any_tenant import NoSuchJobError
from tidemill.cli.explain.job_report import report
from tidemill.cli.formatting import JobView
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import read_units_option
from tidemill.domain.records import replace
from tidemill.domain.states import TERMINAL, State

_LIVE: Final = tuple(state for state in State if state not in TERMINAL)
_STATES: Final = click.Choice(sorted([*map(str, _LIVE), str(State.DEAD)]))


@click.command()
@job_filter_options
@click.option("--state", "states", multiple=True, type=_STATES, help="Jobs in this state; default: every live one.")
@click.option("--all", "everything", is_flag=True, help="Operators: the live jobs of all tenants.")
@write_pace_options
@read_units_option()
@change_options(
    reason="Operators: why, for the history of the jobs.",
    dry_run="Operators: print the plan and change nothing.",
    json="Print each job as a line of JSON; with a filter, the plan or the result as one JSON object.",
)
@click.pass_obj
def cancel(
    installation: Installation,
    *,
    wanted: JobFilter,
    states: tuple[str, ...],
    everything: bool,
    limit: int | None,
    rate: int | None,
    read_units: int,
    how: ChangeOptions,
) -> None:
    """Cancel your own jobs by ID. Operators cancel those of any tenant.

    With IDs and --tenant, operators cancel these jobs of a tenant. With any other option, or --all, they cancel every
    job that matches all options; the command scans the table for them, at a limited rate.

    A job that is not running is cancelled immediately, also if it is dead. A running job receives a cancel request and
    ends at its next checkpoint; `tidemill watch` and `tidemill explain` show when. Safe to repeat.
    """
    only_ids = wanted == JobFilter(ids=wanted.ids, tenant=wanted.tenant) and not (states or everything or how.dry_run)
    if wanted.ids and only_ids and not (limit or rate):
        _cancel_by_id(installation, wanted, how)
        return
    if (wanted == ANY_JOB and not states) is not everything:
        raise click.UsageError("select jobs: give IDs, an option such as --type TYPE, or --all alone")
    how.require_confirmation()
    wanted = replace(wanted, states=tuple(map(State, states)) or _LIVE)
    change = BulkChange(
        name="cancel", action="cancel", verb="Cancelled", wanted=wanted, limit=limit, rate=rate, how=how
    )
    by = "" if how.dry_run else installation.caller
    unreadable = UnreadableJobs()
    change.run(
        installation,
        scanned_jobs(installation, wanted, read_units, unreadable.item),
        lambda job: installation.control.cancel_found(job, wanted, by=by, reason=how.reason),
        unreadable=unreadable,
    )


def _cancel_by_id(installation: Installation, wanted: JobFilter, how: ChangeOptions) -> None:
    ids, owner = list(wanted.ids), wanted.tenant
    if owner is None:
        if how.reason:
            raise click.UsageError("--reason requires --tenant")
        change_own_jobs(installation, ids, "cancel", yes=how.yes, as_json=how.as_json)
        return
    cancelled: list[str] = []

    def change(job_id: str) -> JobView:
        job = installation.control.cancel(owner, job_id, by=installation.caller, reason=how.reason)
        if job is None:
            raise NoSuchJobError(owner, job_id)
        cancelled.append(job_id)
        return report(job)

    recorded = audited(
        installation,
        "cancel",
        options=as_options(wanted),
        counts=lambda: {"written": len(cancelled)},
        reason=how.reason,
    )
    change_jobs(ids, "cancel", change, yes=how.yes, as_json=how.as_json, recorded=recorded)
