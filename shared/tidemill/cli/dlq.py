"""`tidemill dlq`: what waits for a person, read from the documents of the dead jobs."""

import click

from tidemill.application.redrive import Selection
from tidemill.cli.dlq_list import list_dead
from tidemill.cli.dlq_show import lines, report, tell_unreadable
from tidemill.cli.errors import ExplainedError
from tidemill.cli.installation import Installation
from tidemill.cli.output import show, show_json
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.system import clock


@click.group()
def dlq() -> None:
    """Look at the dead jobs of all tenants."""


@dlq.command("list")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only jobs of this type; may be given again.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with everything known of the job.")
@click.pass_obj
def list_(installation: Installation, types: tuple[str, ...], *, as_json: bool) -> None:
    """List the dead jobs, oldest death first.

    For each: reason, error class, attempts and how long it has been dead. They are read from their documents; how many
    letters the dead-letter queues hold is said on stderr.
    """
    list_dead(installation, types, as_json=as_json)


@dlq.command("show")
@click.argument("job_id", metavar="ID")
@click.option("--tenant", help="Whose job; needed only where two tenants have a job of this id.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.pass_obj
def show_(installation: Installation, job_id: str, tenant: str | None, *, as_json: bool) -> None:
    """Show all about one dead job: payload, errors, redrives."""
    job = _of_tenant(installation, tenant, job_id) if tenant else _of_any_tenant(installation, job_id)
    if as_json:
        show_json(report(job))
    else:
        for line, style in lines(job, now=clock.now()):
            show(line, style=style)


def _of_tenant(installation: Installation, tenant: str, job_id: str) -> Job:
    now = clock.now()
    job = installation.store.get(tenant, job_id)
    if job is None or job.expired(now):
        raise ExplainedError(f"tenant {tenant} has no job {job_id}", remedy="`tidemill dlq list` shows both names.")
    if job.state is not State.DEAD:
        raise ExplainedError(f"job {job_id} is not dead but {job.state}", remedy="`tidemill get ID` shows it.")
    return job


def _of_any_tenant(installation: Installation, job_id: str) -> Job:
    found = list(installation.redriver.plan(Selection(ids=[job_id]), unreadable=tell_unreadable))
    if not found:
        raise ExplainedError(
            f"no dead job has the id {job_id}",
            remedy="`tidemill dlq list` shows the dead; `tidemill get ID` shows a job of your own in any state.",
        )
    if len(found) > 1:
        tenants = ", ".join(sorted(job.tenant for job in found))
        raise ExplainedError(f"several tenants have a job {job_id}: {tenants}", remedy="Say whose with --tenant.")
    return found[0]
