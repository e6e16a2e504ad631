"""`tidemill cancel`: end jobs of one's own over the HTTP API."""

import click

from tidemill.cli.installation import Installation
from tidemill.cli.own_jobs import change_own_jobs


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line: each job as it is then.")
@click.pass_obj
def cancel(installation: Installation, ids: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """End jobs of your own.

    One that does not run is cancelled at once, a dead one is discarded. A running one is asked to end: it does at its
    next checkpoint, and `tidemill watch` shows when. Safe to repeat.
    """
    change_own_jobs(installation, ids, "cancel", yes=yes, as_json=as_json)
