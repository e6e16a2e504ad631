"""`tidemill list`: the caller's own jobs over the HTTP API, newest first."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

import click

from tidemill.cli.api_call import RefusedError, call
from tidemill.cli.errors import ExplainedError
from tidemill.cli.formatting import NOTHING, age, how_far, timestamp, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import ID_WIDTH, NARROWEST, console, framed, plain_table, say, stacked
from tidemill.cli.parameter_types import MOMENT
from tidemill.domain.states import State
from tidemill.operator.http_client import HttpApi
from tidemill.system import clock

_STATES: Final = click.Choice(list(map(str, State)))
#: Jobs that one request may ask for.
_LARGEST_PAGE: Final = 100
#: What one request covers. Unbounded, an empty year would be asked for month by month.
_LOOK_BACK: Final = timedelta(days=30)


@click.command("list")
@click.option("--state", type=_STATES, metavar="STATE", help=f"Only jobs in this state: {', '.join(State)}.")
@click.option("--type", "type_", metavar="TYPE", help="Only jobs of this type.")
@click.option("--since", type=MOMENT, metavar="TIME", help="Submitted then or later; 30d ago, unless --all.")
@click.option("--until", type=MOMENT, metavar="TIME", help="Submitted before then.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="NUMBER", help="At most.")
@click.option("--all", "everything", is_flag=True, help="All there are, page after page.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def list_(
    installation: Installation,
    *,
    state: str | None,
    type_: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    everything: bool,
    as_json: bool,
) -> None:
    """List jobs of your own, newest first.

    A TIME is a span before now, such as 2h or 7d, or an instant such as 2026-01-31T12:00:00Z.

    The dead jobs of all tenants are shown by `tidemill dlq list`, which reads the table.
    """
    if since is None and not everything:
        since = (until or clock.now()) - _LOOK_BACK
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--since must be before --until")
    moments = {"since": since and timestamp(since), "until": until and timestamp(until)}
    filters = {name: value for name, value in {"state": state, "type": type_, **moments}.items() if value}
    pages = _pages(installation.api, filters, None if everything else limit)
    if as_json:
        for page in pages:
            for job in page:
                click.echo(json.dumps(job, separators=(",", ":")))
    elif jobs := [job for page in pages for job in page]:
        _show(jobs)
    else:
        say("No such jobs.")


def _pages(api: HttpApi, filters: Mapping[str, str], limit: int | None) -> Iterator[Sequence[Any]]:
    """Page after page, since a page may be short, or empty, and not be the last."""
    cursor, left = None, limit
    while left is None or left > 0:
        size = _LARGEST_PAGE if left is None else min(left, _LARGEST_PAGE)
        query = {**filters, "limit": str(size)} | ({"cursor": cursor} if cursor else {})
        page = _page(api, query)
        yield page["jobs"]
        cursor = page["cursor"]
        if not cursor:
            return
        left = None if left is None else left - len(page["jobs"])
    say("There may be more: --all goes on to the end.")


def _page(api: HttpApi, query: Mapping[str, str]) -> Any:
    try:
        # As signatures want it: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
        page, _ = call(api, "GET", f"/jobs?{urlencode(query, quote_via=quote, safe='')}")
    except RefusedError as error:
        if error.code != "listing-off":
            raise
        raise ExplainedError(
            "this installation keeps no list of jobs, which saves it a write for each",
            remedy="`tidemill get ID` and `tidemill watch ID` show a job, and `tidemill dlq list` the dead; "
            "deploy with `-c listing=on` to have the jobs listed that come after.",
        ) from error
    return page


def _show(jobs: Sequence[Any]) -> None:
    screen = console()
    now = clock.now()
    rows = [
        (
            job["id"],
            job["type"],
            job["state"],
            job["lane"],
            str(job["attempt"]),
            how_far(job) or NOTHING,
            age(now - datetime.fromisoformat(job["created_at"])),
        )
        for job in jobs
    ]
    if not screen.is_terminal or screen.width < NARROWEST:
        click.echo(plain_table(("ID", "TYPE", "STATE", "LANE", "ATTEMPTS", "PROGRESS", "AGE"), rows))
        return
    # Two lines a job, so that ids fit into 80 columns.
    table = framed()
    table.add_column("ID\nTYPE", min_width=ID_WIDTH, overflow="fold")
    table.add_column("STATE\nLANE", no_wrap=True)
    table.add_column("ATTEMPTS\nPROGRESS", overflow="fold")
    table.add_column("AGE", justify="right", no_wrap=True)
    for id_, type_, state, lane, attempts, far, since in rows:
        table.add_row(stacked(id_, type_), stacked(state, lane), stacked(attempts, far), visible(since))
    screen.print(table)
