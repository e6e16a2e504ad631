"""`tidemill retry`: a hidden alias of `tidemill redrive --own`, so that old scripts work."""

import click

from tidemill.cli.installation import Installation
from tidemill.cli.options import yes_option
from tidemill.cli.own_jobs import change_own_jobs
from tidemill.cli.parameter_types import JOB_ID


@click.command(hidden=True)
@click.argument("ids", type=JOB_ID, nargs=-1, required=True, metavar="ID...")
@yes_option
@click.option("--json", "as_json", is_flag=True, help="Print each resulting job as a line of JSON.")
@click.pass_obj
def retry(installation: Installation, ids: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Requeue your own dead jobs: an alias of `tidemill redrive --own`."""
    change_own_jobs(installation, ids, "redrive", yes=yes, as_json=as_json)
