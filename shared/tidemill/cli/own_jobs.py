"""One request for each of several jobs of the caller's own, over the HTTP API."""

import json
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import click

from tidemill.cli.api_call import RefusedError, call, path_of
from tidemill.cli.confirm import confirmed, require_somebody
from tidemill.cli.errors import ExplainedError
from tidemill.cli.formatting import count, standing, visible, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.output import say, show

#: Refusals of one job that say nothing of the next.
_OF_THE_JOB: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})
_DONE: Final = {"cancel": "cancelled", "retry": "retried"}


def change_own_jobs(installation: Installation, ids: Sequence[str], verb: str, *, yes: bool, as_json: bool) -> None:
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
