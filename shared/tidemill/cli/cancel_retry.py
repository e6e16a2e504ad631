"""`tidemill cancel` and `tidemill retry`: end jobs of one's own, and give dead ones another life, over the HTTP API."""

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import click

from tidemill.cli.api_call import RefusedError, call, path_of
from tidemill.cli.confirm import confirmed, require_somebody
from tidemill.cli.errors import ExplainedError, visible_lines
from tidemill.cli.formatting import count, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import say, show
from tidemill.cli.watch import standing

#: Refusals of one job that say nothing of the next.
_OF_THE_JOB: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})


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
    _each(installation, ids, "cancel", yes=yes, as_json=as_json)


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
    _each(installation, ids, "retry", yes=yes, as_json=as_json)


def _each(installation: Installation, ids: Sequence[str], verb: str, *, yes: bool, as_json: bool) -> None:
    chosen = list(dict.fromkeys(ids))
    require_somebody(yes=yes)
    if not confirmed(f"{verb.capitalize()} {count(len(chosen), 'job')}?", yes=yes):
        return
    refused = 0
    for job_id in chosen:
        try:
            job, _ = call(installation.api, "POST", f"{path_of(job_id)}/{verb}")
        except RefusedError as error:
            if len(chosen) == 1 or error.status not in _OF_THE_JOB:
                raise
            refused += 1
            say(visible_lines(f"{job_id}  {error}"))
        else:
            if as_json:
                click.echo(json.dumps(job, separators=(",", ":")))
            else:
                show(f"{visible(job['id'])}  {standing(job)}")
    if refused:
        raise ExplainedError(f"{refused} of {count(len(chosen), 'job')} could not be {_DONE[verb]}")


_DONE: Final = {"cancel": "cancelled", "retry": "retried"}
