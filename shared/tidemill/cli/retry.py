"""`tidemill retry`: give dead jobs of one's own another life, over the HTTP API."""

import click

from tidemill.cli.installation import Installation
from tidemill.cli.own_jobs import change_own_jobs


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: each job as it is then.")
@click.pass_obj
def retry(installation: Installation, ids: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Give dead jobs of your own another life.

    Only dead jobs can be retried; all their attempts begin anew. `tidemill redrive` does the same for the jobs of all
    tenants, and tidies letters.
    """
    change_own_jobs(installation, ids, "retry", yes=yes, as_json=as_json)
