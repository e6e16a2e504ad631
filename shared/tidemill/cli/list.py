"""`tidemill list`: list the caller's own jobs over the HTTP API, newest first."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

import click

from tidemill.aws.http_client import HttpApi
from tidemill.cli.api_call import ApiError, call
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import DASH, age, progress_text, timestamp, visible, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.output import ID_WIDTH, MIN_TABLE_WIDTH, console, new_table, plain_table, say, two_line_cell
from tidemill.cli.parameter_types import TIMESTAMP_OR_AGE
from tidemill.domain.states import State
from tidemill.system import clock

_STATES: Final = click.Choice(list(map(str, State)))
#: The most jobs that one request returns.
_MAX_PAGE: Final = 100
#: The default range. The API searches month by month, so a listing without a bound could search empty years.
_DEFAULT_RANGE: Final = timedelta(days=30)


@click.command("list")
@click.option("--state", type=_STATES, metavar="STATE", help=f"Only jobs in this state: {', '.join(State)}.")
@click.option("--type", "type_", metavar="TYPE", help="Only jobs of this type.")
@click.option(
    "--since",
    type=TIMESTAMP_OR_AGE,
    metavar="TIME",
    help="Only jobs submitted at or after TIME; default: 30 days back, or no bound with --all.",
)
@click.option("--until", type=TIMESTAMP_OR_AGE, metavar="TIME", help="Only jobs submitted before TIME.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="NUMBER",
    help="Maximum number of jobs.",
)
@click.option("--all", "everything", is_flag=True, help="List all jobs, page after page.")
@click.option("--json", "as_json", is_flag=True, help="Print each job as a line of JSON.")
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
    """List your own jobs, newest first.

    TIME is a duration before now, such as 2h or 7d, or a timestamp such as 2026-01-31T12:00:00Z.

    To list the dead jobs of all tenants, use `tidemill dlq list`.
    """
    if since is None and not everything:
        since = (until or clock.now()) - _DEFAULT_RANGE
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--since must be before --until")
    times = {"since": since and timestamp(since), "until": until and timestamp(until)}
    filters = {name: value for name, value in {"state": state, "type": type_, **times}.items() if value}
    pages = _pages(installation.api, filters, None if everything else limit)
    if as_json:
        for page in pages:
            for job in page:
                click.echo(json.dumps(job, separators=(",", ":")))
    elif jobs := [job for page in pages for job in page]:
        _show(jobs)
    else:
        say("No matching jobs.")


def _pages(api: HttpApi, filters: Mapping[str, str], limit: int | None) -> Iterator[Sequence[Any]]:
    """Follow the cursor: a page may be short or empty without being the last."""
    cursor, left = None, limit
    while left is None or left > 0:
        size = _MAX_PAGE if left is None else min(left, _MAX_PAGE)
        query = {**filters, "limit": str(size)} | ({"cursor": cursor} if cursor else {})
        page = _page(api, query)
        for job in page["unreadable"]:
            say(visible_lines(f"Job {job['id']} cannot be read; an operator must repair it: {job['error']}"))
        yield page["jobs"]
        cursor = page["cursor"]
        if not cursor:
            return
        left = None if left is None else left - len(page["jobs"])
    say("More jobs may exist: --all lists every page.")


def _page(api: HttpApi, query: Mapping[str, str]) -> Any:
    try:
        # The encoding that signatures require: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
        page, _ = call(api, "GET", f"/jobs?{urlencode(query, quote_via=quote, safe='')}")
    except ApiError as error:
        if error.code != "listing-off":
            raise
        raise CommandError(
            "this installation keeps no list of jobs, which saves one write per job",
            remedy="`tidemill get ID` and `tidemill watch ID` show one job, `tidemill dlq list` lists the dead jobs. "
            "To list the jobs that are submitted from then on, deploy with `-c listing=on`.",
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
            progress_text(job) or DASH,
            age(now - datetime.fromisoformat(job["created_at"])),
        )
        for job in jobs
    ]
    if not screen.is_terminal or screen.width < MIN_TABLE_WIDTH:
        click.echo(plain_table(("ID", "TYPE", "STATE", "LANE", "ATTEMPTS", "PROGRESS", "AGE"), rows))
        return
    # Two lines per job, so that ids fit into 80 columns.
    table = new_table()
    table.add_column("ID\nTYPE", min_width=ID_WIDTH, overflow="fold")
    table.add_column("STATE\nLANE", no_wrap=True)
    table.add_column("ATTEMPTS\nPROGRESS", overflow="fold")
    table.add_column("AGE", justify="right", no_wrap=True)
    for id_, type_, state, lane, attempts, progress, since in rows:
        table.add_row(
            two_line_cell(id_, type_), two_line_cell(state, lane), two_line_cell(attempts, progress), visible(since)
        )
    screen.print(table)
