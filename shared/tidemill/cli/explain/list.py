"""`tidemill list`: list the caller's own jobs over the HTTP API, newest first."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlencode

import click

from tidemill.application.job_filter import JobFilter
from tidemill.aws.http_client import HttpApi
from tidemill.cli.api_call import ApiError, call
from tidemill.cli.errors import CommandError
from tidemill.cli.explain.job_table import show_jobs
from tidemill.cli.explain.list_any_tenant import Request, list_any_tenant
from tidemill.cli.formatting import timestamp, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.options import given, json_option, read_units_option
from tidemill.cli.output import say, show_json
from tidemill.cli.parameter_types import TIMESTAMP_OR_AGE
from tidemill.domain.states import State
from tidemill.system import clock

_STATES: Final = click.Choice(list(map(str, State)))
#: The most jobs that one request returns.
_MAX_PAGE: Final = 100
#: Parameters that only the jobs of any tenant take.
_OF_OPERATORS: Final = frozenset({"error", "cursor", "read_units", "most_read_units"})
#: The default range. The API searches month by month, so a listing without a bound could search empty years.
_DEFAULT_RANGE: Final = timedelta(days=30)


@click.command("list")
@click.option("--state", type=_STATES, metavar="STATE", help=f"Only jobs in this state: {', '.join(State)}.")
@click.option("--type", "type_", metavar="TYPE", help="Only jobs of this type.")
@click.option("--tag", metavar="TAG", help="Only jobs with this tag.")
@click.option("--batch", metavar="ID", help="Only jobs of this batch.")
@click.option("--event", metavar="ID", help="Only the jobs of the consumers of this event.")
@click.option(
    "--since",
    type=TIMESTAMP_OR_AGE,
    metavar="TIME",
    help="Only jobs submitted at or after TIME; default: 30 days back, and no bound with --all, --batch, --event, "
    "--tenant or --all-tenants.",
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
@click.option("--tenant", help="Operators: the jobs of this tenant, read from the table.")
@click.option("--all-tenants", is_flag=True, help="Operators: the jobs of all tenants, read from the table.")
@click.option("--error", metavar="CLASS", help="Operators: only jobs whose last error has this class.")
@click.option("--cursor", help="Operators: continue a scan where another command stopped.")
@read_units_option("Operators: read units per second that a scan may take.")
@click.option(
    "--most-read-units",
    type=click.IntRange(min=1),
    default=5000,
    show_default=True,
    metavar="NUMBER",
    help="Operators: read units after which a scan stops.",
)
@json_option("Print each job as a line of JSON.")
@click.pass_obj
def list_(
    installation: Installation,
    *,
    state: str | None,
    type_: str | None,
    tag: str | None,
    batch: str | None,
    event: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
    everything: bool,
    tenant: str | None,
    all_tenants: bool,
    error: str | None,
    cursor: str | None,
    read_units: int,
    most_read_units: int,
    as_json: bool,
) -> None:
    """List your own jobs, newest first.

    TIME is a duration before now, such as 2h or 7d, or a timestamp such as 2026-01-31T12:00:00Z.

    With --tenant or --all-tenants, operators list the jobs of any tenant: the command reads the table. An index answers
    for dead and scheduled jobs, and for the jobs of one tenant where the stage keeps a list. Any other question scans
    the table, in no useful order and at a limited rate: 1,000 jobs of 1 KB cost 125 read units. The command says how
    far it read, and the cursor with which to go on. With --batch or --event it reads the jobs of that one only, in the
    order of their IDs.
    """
    _require_at_most_one({"--batch": batch, "--event": event})
    _require_at_most_one({"--tenant": tenant, "--all-tenants": all_tenants})
    if tenant or all_tenants:
        wanted = JobFilter(
            tenant=tenant,
            states=[State(state)] if state else [],
            types=[type_] if type_ else [],
            tag=tag,
            since=since,
            until=until,
            error=error,
        )
        list_any_tenant(
            installation,
            Request(
                wanted=wanted,
                whole=batch or event,
                limit=None if everything else limit,
                cursor=cursor,
                read_units=read_units,
                most_units=most_read_units,
                as_json=as_json,
            ),
        )
        return
    if of_operators := sorted(given() & _OF_OPERATORS):
        named = " and ".join(f"--{name.replace('_', '-')}" for name in of_operators)
        raise click.UsageError(f"without --tenant or --all-tenants, leave out {named}")
    if since is None and not (everything or batch or event):
        since = (until or clock.now()) - _DEFAULT_RANGE
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--since must be before --until")
    times = {"since": since and timestamp(since), "until": until and timestamp(until)}
    asked = {"state": state, "type": type_, "tag": tag, "batch": batch, "event": event, **times}
    filters = {name: value for name, value in asked.items() if value}
    pages = _pages(installation.api, filters, None if everything else limit)
    if as_json:
        for page in pages:
            for job in page:
                show_json(job, one_line=True)
    elif jobs := [job for page in pages for job in page]:
        show_jobs(jobs)
    else:
        say("No matching jobs.")


def _require_at_most_one(options: Mapping[str, object]) -> None:
    if all(options.values()):
        raise click.UsageError(f"choose one of {' and '.join(options)}")


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
