"""`tidemill cancel`: cancel the caller's own jobs over the HTTP API, or those of any tenant in the table."""

import click

from tidemill.cli.dead_job_report import report
from tidemill.cli.formatting import JobView
from tidemill.cli.installation import Installation
from tidemill.cli.own_jobs import NoSuchJobError, change_jobs, change_own_jobs
from tidemill.cli.parameter_types import reason_text


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--tenant", help="Operators: cancel the jobs of this tenant, in the table.")
@click.option(
    "--reason",
    default="",
    callback=reason_text,
    metavar="TEXT",
    help="With --tenant: why, for the history of the jobs.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print each resulting job as a line of JSON.")
@click.pass_obj
def cancel(
    installation: Installation, ids: tuple[str, ...], tenant: str | None, *, reason: str, yes: bool, as_json: bool
) -> None:
    """Cancel your own jobs. With --tenant, operators cancel those of a tenant.

    A job that is not running is cancelled immediately, also if it is dead. A running job receives a cancel request and
    ends at its next checkpoint; `tidemill watch` and `tidemill explain` show when. Safe to repeat.
    """
    if tenant is None and reason:
        raise click.UsageError("--reason requires --tenant")
    if tenant is None:
        change_own_jobs(installation, ids, "cancel", yes=yes, as_json=as_json)
        return
    owner = tenant

    def change(job_id: str) -> JobView:
        job = installation.control.cancel(owner, job_id, by=installation.caller, reason=reason)
        if job is None:
            raise NoSuchJobError(f"tenant {owner} has no job {job_id}")
        return report(job)

    change_jobs(ids, "cancel", change, yes=yes, as_json=as_json)
