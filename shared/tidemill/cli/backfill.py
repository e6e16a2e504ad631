"""`tidemill backfill`: submit the jobs that make up for work that handlers skipped under strain."""

import click

from tidemill.application.job_filter import JobFilter
from tidemill.cli.bulk_change import BulkChange
from tidemill.cli.confirm import require_confirmation
from tidemill.cli.installation import Installation
from tidemill.cli.job_filter_options import write_pace_options
from tidemill.cli.options import read_units_option, reason_option, yes_option
from tidemill.cli.scanned_jobs import scanned_jobs
from tidemill.cli.unreadable_jobs import UnreadableJobs
from tidemill.domain.states import State


@click.command()
@click.argument("type_", metavar="TYPE")
@click.option("--skipped", "name", required=True, metavar="NAME", help="The work, as its handler named it.")
@click.option("--tenant", help="Only jobs of this tenant.")
@write_pace_options
@read_units_option()
@reason_option()
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@yes_option
@click.option("--json", "as_json", is_flag=True, help="Print the plan or the result as one JSON object.")
@click.pass_obj
def backfill(
    installation: Installation,
    *,
    type_: str,
    name: str,
    tenant: str | None,
    limit: int | None,
    rate: int | None,
    read_units: int,
    reason: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Submit the jobs that make up for skipped work.

    Scans the whole table, at a limited rate, for succeeded jobs of the type whose handler called run.skipped(NAME).
    Each gets one job on lane bulk, with its payload and of the type that its declaration named. It is submitted once.

    Safe to repeat and to run concurrently. `tidemill audit` shows who backfilled what.

    Example: tidemill backfill click.enrich --skipped geo --reason "the strain is over"
    """
    require_confirmation(yes=yes or dry_run, alternative=", or --dry-run to see the plan")
    wanted = JobFilter(types=(type_,), tenant=tenant, states=(State.SUCCEEDED,), skipped=name)
    change = BulkChange(
        name="backfill",
        action="backfill",
        verb="Backfilled",
        wanted=wanted,
        limit=limit,
        rate=rate,
        reason=reason,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
    )
    unreadable = UnreadableJobs()
    found = scanned_jobs(installation, wanted, read_units, unreadable.item)
    change.run(installation, found, lambda job: installation.backfiller.backfill(job, name), unreadable=unreadable)
