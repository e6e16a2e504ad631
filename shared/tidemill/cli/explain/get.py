"""`tidemill get`: read a job, over the HTTP API or from the table."""

import click

from tidemill.cli.api_call import call, job_path
from tidemill.cli.explain.any_tenant import read
from tidemill.cli.explain.job_report import report
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import show_json
from tidemill.cli.parameter_types import JOB_ID


@click.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.option("--tenant", help="Operators: read the job of this tenant from the table.")
@json_option("Print one line of JSON, also to a terminal.")
@click.pass_obj
def get(installation: Installation, job_id: str, tenant: str | None, *, as_json: bool) -> None:
    """Print one of your own jobs, in any state, as JSON.

    With --tenant, operators print a job of any tenant. Then a payload that is stored outside the job document is null,
    and `payload_at` names its place.
    """
    if tenant:
        show_json(report(read(installation, tenant, job_id)), one_line=as_json)
        return
    job, _ = call(installation.api, "GET", job_path(job_id))
    show_json(job, one_line=as_json)
