"""`tidemill cancel`: cancel the caller's own jobs over the HTTP API."""

import click

from tidemill.cli.installation import Installation
from tidemill.cli.own_jobs import change_own_jobs


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print each resulting job as a line of JSON.")
@click.pass_obj
def cancel(installation: Installation, ids: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Cancel your own jobs.

    A job that is not running is cancelled immediately, also if it is dead. A running job receives a cancel request and
    ends at its next checkpoint; `tidemill watch` shows when. Safe to repeat.
    """
    change_own_jobs(installation, ids, "cancel", yes=yes, as_json=as_json)
