"""`tidemill get`: read a job over the HTTP API."""

import click

from tidemill.cli.api_call import call, job_path
from tidemill.cli.installation import Installation
from tidemill.cli.output import show_json


@click.command()
@click.argument("job_id", metavar="ID")
@click.pass_obj
def get(installation: Installation, job_id: str) -> None:
    """Print one of your own jobs, in any state, as JSON."""
    job, _ = call(installation.api, "GET", job_path(job_id))
    show_json(job)
