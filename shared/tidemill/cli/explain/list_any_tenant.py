"""`tidemill list` for operators: the jobs of any tenant, from an index where one answers, else from a scan."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

import click

from tidemill.application.job_filter import JobFilter
from tidemill.application.job_view import summary
from tidemill.cli.errors import CommandError, report_unreadable, report_unreadable_item
from tidemill.cli.explain.any_tenant import read, tenant_of
from tidemill.cli.explain.job_report import error_class
from tidemill.cli.explain.job_table import show_jobs
from tidemill.cli.formatting import count
from tidemill.cli.installation import Installation
from tidemill.cli.output import say, show_json
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.batches.listed_members import has_members
from tidemill.dynamodb.listing import Wanted
from tidemill.dynamodb.listing_entries import Position
from tidemill.system import clock

_MAX_TIME: Final = datetime.max.replace(tzinfo=UTC)
_MIN_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PAGE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to list. `limit` is None for all jobs."""

    wanted: JobFilter
    #: The id of the batch or event whose jobs to list.
    whole: str | None
    limit: int | None
    cursor: str | None
    read_units: int
    most_units: int
    as_json: bool


def list_any_tenant(installation: Installation, request: Request) -> None:
    wanted, now = request.wanted, clock.now()
    if request.whole is not None:
        jobs = _members(installation, request.whole, wanted, now)
    elif request.cursor is None and wanted.states in ([State.DEAD], [State.SCHEDULED]):
        jobs = _indexed(installation, wanted, now)
    elif request.cursor is None and wanted.tenant is not None and installation.keeps_listing:
        jobs = _listed(installation, wanted, now)
    else:
        _scan(installation, request, now)
        return
    _show(list(islice(jobs, request.limit)) if request.limit else list(jobs), request)


def _indexed(installation: Installation, wanted: JobFilter, now: datetime) -> Iterator[Job]:
    """Dead jobs, the earliest death first; scheduled jobs, the earliest due time first."""
    store = installation.store
    jobs = (
        store.dead(wanted, unreadable=report_unreadable)
        if State.DEAD in wanted.states
        else store.scheduled(before=_MAX_TIME, unreadable=report_unreadable)
    )
    return (job for job in jobs if job in wanted and not job.lifetime.over(now))


def _listed(installation: Installation, wanted: JobFilter, now: datetime) -> Iterator[Job]:
    """The newest first."""
    selection = _selection(wanted)
    below: Position | None = Position(wanted.until or _MAX_TIME)
    while below is not None:
        page = installation.listing.page(selection, below=below, limit=_PAGE, now=now)
        for job_id, error in page.unreadable.items():
            report_unreadable(selection.tenant, job_id, error)
        yield from (job for job in page.jobs if job in wanted)
        below = page.end


def _members(installation: Installation, job_id: str, wanted: JobFilter, now: datetime) -> Iterator[Job]:
    """Yield the jobs of a batch or an event by their ids. Raises `CommandError` if the job is neither."""
    whole = read(installation, wanted.tenant or tenant_of(installation, job_id), job_id)
    if not has_members(whole):
        raise CommandError(
            f"job {job_id} is neither a batch nor an event", remedy="`tidemill explain ID` says what it is."
        )
    below = Position(wanted.until or _MAX_TIME)
    jobs = installation.member_listing.all(
        whole, _selection(wanted), below=below, now=now, unreadable=report_unreadable
    )
    return (job for job in jobs if job in wanted)


def _selection(wanted: JobFilter) -> Wanted:
    return Wanted(
        tenant=wanted.tenant or "",
        since=wanted.since or _MIN_TIME,
        state=next(iter(wanted.states), None),
        type=next(iter(wanted.types), None),
        tag=wanted.tag,
    )


def _scan(installation: Installation, request: Request, now: datetime) -> None:
    """Show each page as it comes, and afterwards how to go on, also after Ctrl-C."""
    search = installation.search(request.read_units)
    after = None if request.cursor is None else _decoded(request.cursor)
    cursor, found, items, units = after, 0, 0, 0.0
    try:
        for step in search.steps(
            request.wanted, now=now, after=after, most_jobs=request.limit, most_units=request.most_units
        ):
            cursor, items, units = step.cursor, step.items, step.read_units
            found += len(step.jobs)
            for item in step.unreadable:
                report_unreadable_item(item)
            if step.jobs:
                _show(step.jobs, request)
            say(f"Read {count(items, 'item')} for {units:g} read units, and found {count(found, 'job')}.")
    finally:
        if cursor is not None:
            # Not wrapped: it is to be copied.
            click.echo(f"The table has more items. Continue with --cursor {_encoded(cursor)}", err=True)
    if not found and cursor is None:
        say("No matching jobs.")


def _show(jobs: list[Job] | Any, request: Request) -> None:
    views = [{"tenant": job.tenant} | summary(job) | {"error": error_class(job)} for job in jobs]
    if request.as_json:
        for view in views:
            show_json(view, one_line=True)
    elif views:
        show_jobs(views)
    else:
        say("No matching jobs.")


def _encoded(cursor: str) -> str:
    """Keys contain characters that a shell changes."""
    return base64.urlsafe_b64encode(cursor.encode()).decode()


def _decoded(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise click.BadParameter("not a cursor of this command", param_hint="--cursor") from error
