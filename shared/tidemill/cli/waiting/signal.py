"""`tidemill signal`: give a job the data that it waits for, over the HTTP API or, for operators, in the table."""

from typing import Any
from urllib.parse import quote

import click

from tidemill.application.job_filter import JobFilter
from tidemill.cli.api_call import call, job_path
from tidemill.cli.control.job_filter_options import as_options
from tidemill.cli.explain.any_tenant import NoSuchJobError
from tidemill.cli.explain.job_report import report
from tidemill.cli.formatting import JobView, state_text, visible
from tidemill.cli.installation import Installation
from tidemill.cli.json_input import decoded
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import json_option, reason_option
from tidemill.cli.output import show, show_json
from tidemill.cli.parameter_types import JOB_ID
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import CAME


@click.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("data", metavar="JSON")
@click.option("--tenant", help="Operators: signal a job of this tenant in the table.")
@reason_option("Operators: why, for the audit log.")
@json_option("Print the resulting job as JSON.")
@click.pass_obj
def signal(
    installation: Installation, *, job_id: str, name: str, data: str, tenant: str | None, reason: str, as_json: bool
) -> None:
    """Give your own job the data that it waits for.

    A job that waits for the signal NAME runs at once. Any other live job keeps the signal until a run asks for it. The
    first value counts: the same again changes nothing, and another one is refused. JSON is at most 4,096 bytes, as
    compact ASCII.

    Example: tidemill signal ID approval '{"approved": true}'
    """
    value = decoded(data, hint="JSON")
    if tenant is None:
        if reason:
            raise click.UsageError("--reason requires --tenant")
        path = f"{job_path(job_id)}/signals/{quote(name, safe='')}"
        headers = {"Content-Type": "application/json"}
        job: JobView = call(installation.api, "POST", path, body=data.encode(), headers=headers)[0]
    else:
        job = _signalled_as_operator(installation, tenant, job_id, name, value, reason=reason)
    if as_json:
        show_json(job, one_line=True)
    else:
        show(f"{visible(job['id'])}  {state_text(job)}")
        if not _has_ended_a_wait(job, name):
            note = "The job does not wait for the signal {} now. It keeps the signal until a run asks for it."
            click.echo(note.format(visible(name)), err=True)


def _has_ended_a_wait(job: JobView, name: str) -> bool:
    """The signal has just ended a wait, or, as a repeat, comes to a job that has ended."""
    last = job["history"][-1]["cause"] if job.get("history") else ""
    return last == f"{CAME}{name}" or State(job["state"]).terminal


def _signalled_as_operator(
    installation: Installation, tenant: str, job_id: str, name: str, value: Any, *, reason: str
) -> JobView:
    written: list[JobView] = []
    options = as_options(JobFilter(ids=(job_id,), tenant=tenant)) | {"name": name}
    with audited(installation, "signal", options=options, counts=lambda: {"written": len(written)}, reason=reason):
        job = installation.control.signal(tenant, job_id, name, value)
        if job is None:
            raise NoSuchJobError(tenant, job_id)
        written.append(report(job))
    return written[0]
