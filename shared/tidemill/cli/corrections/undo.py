"""`tidemill undo`: submit the job that undoes another, over the HTTP API or, for operators, in the table."""

import click

from tidemill.application.job_filter import JobFilter
from tidemill.cli.api_call import call, job_path
from tidemill.cli.control.job_filter_options import as_options
from tidemill.cli.explain.any_tenant import NoSuchJobError
from tidemill.cli.explain.job_report import report
from tidemill.cli.formatting import JobView, state_text, visible
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import json_option, reason_option
from tidemill.cli.output import show, show_json
from tidemill.cli.parameter_types import JOB_ID


@click.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.option("--tenant", help="Operators: undo a job of this tenant.")
@reason_option("Operators: why, for the audit log and the job.")
@json_option("Print the job that undoes it as JSON.")
@click.pass_obj
def undo(installation: Installation, *, job_id: str, tenant: str | None, reason: str, as_json: bool) -> None:
    """Submit the job that undoes the effect of your own job.

    Its handler said with its success which job that is; `tidemill get` shows it. It is submitted once: a repeated
    command prints the same job. A job that has not succeeded, or recorded no undo, is refused.

    Example: tidemill undo ID
    """
    if tenant is None:
        if reason:
            raise click.UsageError("--reason requires --tenant")
        job: JobView = call(installation.api, "POST", f"{job_path(job_id)}/undo")[0]
    else:
        job = _undone_as_operator(installation, tenant, job_id, reason=reason)
    if as_json:
        show_json(job, one_line=True)
    else:
        show(f"{visible(job['id'])}  {state_text(job)}")


def _undone_as_operator(installation: Installation, tenant: str, job_id: str, *, reason: str) -> JobView:
    submitted: list[bool] = []
    options = as_options(JobFilter(ids=(job_id,), tenant=tenant))
    with audited(installation, "undo", options=options, counts=lambda: {"written": sum(submitted)}, reason=reason):
        accepted = installation.undoer(tenant, job_id, by=installation.caller, reason=reason)
        if accepted is None:
            raise NoSuchJobError(tenant, job_id)
        submitted.append(not accepted.replayed)
    return report(accepted.job)
