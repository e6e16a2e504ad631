"""One job of any tenant, for operators: read from the table with AWS credentials."""

import click

from tidemill.cli.errors import CommandError
from tidemill.cli.installation import Installation
from tidemill.domain.job import Job
from tidemill.operator.explain.find_job import Found

#: For commands that find the tenant if it is not given.
tenant_option = click.option(
    "--tenant", help="Tenant of the job. Without it the command looks for the job, which may take some seconds."
)


class NoSuchJobError(CommandError):
    """The tenant has no such job."""

    def __init__(self, tenant: str, job_id: str) -> None:
        super().__init__(f"tenant {tenant} has no job {job_id}", remedy="Check both; expired jobs are deleted.")


def tenant_of(installation: Installation, job_id: str) -> str:
    """The tenant that has this job. Raises `CommandError` if there is not exactly one."""
    return one_tenant(installation.finder.any_job(job_id, likely=installation.own_tenants()), job_id)


def one_tenant(found: Found, job_id: str, *, what: str = "job") -> str:
    if len(found.tenants) > 1:
        raise CommandError(
            f"several tenants have a job {job_id}: {', '.join(found.tenants)}", remedy="Choose one with --tenant."
        )
    if found.tenants:
        return found.tenants[0]
    if found.everywhere:
        other = ", and `tidemill explain ID` finds a job in any state" if what != "job" else ""
        raise CommandError(
            f"no {what} has the ID {job_id}",
            remedy=f"Check the ID; expired jobs are deleted. `tidemill dlq list` lists the dead jobs{other}.",
        )
    raise CommandError(
        f"no {what} has the ID {job_id} among those that were searched",
        remedy="Name its tenant with --tenant. `tidemill dlq list` and the log lines of the job show it.",
    )


def read(installation: Installation, tenant: str, job_id: str) -> Job:
    """Raises `NoSuchJobError`."""
    job = installation.control.find(tenant, job_id)
    if job is None:
        raise NoSuchJobError(tenant, job_id)
    return job
