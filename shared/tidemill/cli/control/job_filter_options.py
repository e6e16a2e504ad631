"""The options that select jobs: one set for redrive, cancel, purge and export."""

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, Final

import click
from msgspec.structs import asdict

from tidemill.application.job_filter import JobFilter
from tidemill.application.passes.pace import MOST_WRITES_PER_SECOND
from tidemill.cli.formatting import timestamp
from tidemill.cli.options import Command
from tidemill.cli.parameter_types import JOB_ID, TIMESTAMP_OR_AGE
from tidemill.domain.job import DeathReason

#: An audit entry, which is one item, names at most so many ids:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Limits.html
_MOST_IDS: Final = 100


def job_filter_options(command: Command) -> Command:
    """Calls the command with `wanted`, a `JobFilter`, instead of the options that it adds."""

    @wraps(command)
    def with_filter(
        *arguments: Any,
        ids: tuple[str, ...],
        tenant: str | None,
        types: tuple[str, ...],
        deaths: tuple[str, ...],
        error: str | None,
        fingerprint: str | None,
        tag: str | None,
        submitted_since: datetime | None,
        submitted_until: datetime | None,
        ended_since: datetime | None,
        ended_until: datetime | None,
        **options: Any,
    ) -> None:
        wanted = JobFilter(
            ids=ids,
            tenant=tenant,
            types=types,
            deaths=tuple(map(DeathReason, deaths)),
            error=error,
            fingerprint=fingerprint,
            tag=tag,
            since=submitted_since,
            until=submitted_until,
            ended_since=ended_since,
            ended_until=ended_until,
        )
        command(*arguments, wanted=wanted, **options)

    decorated: Command = with_filter
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def as_options(wanted: JobFilter, **others: int | bool | str | None) -> dict[str, Any]:
    """What was chosen, as JSON, for an audit entry. Of many ids, the first ones and their number."""
    chosen: dict[str, Any] = asdict(wanted) | others
    if len(wanted.ids) > _MOST_IDS:
        chosen |= {"ids": tuple(wanted.ids)[:_MOST_IDS], "number_of_ids": len(wanted.ids)}
    return {name: _json(value) for name, value in chosen.items() if value not in (None, (), False)}


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return timestamp(value)
    return [str(one) for one in value] if isinstance(value, tuple) else value


def pace_options(command: Command) -> Command:
    """Adds `limit` and `rate`, in jobs per second."""
    return _limit(_rate("At most so many jobs per second.")(command))


def write_pace_options(command: Command) -> Command:
    """The same, of a command that changes jobs. Without `rate`, it changes `MOST_WRITES_PER_SECOND`."""
    return _limit(_rate(f"At most so many jobs per second; by default {MOST_WRITES_PER_SECOND:,}.")(command))


def _rate(text: str) -> Callable[[Command], Command]:
    return click.option("--rate", type=click.IntRange(min=1), metavar="NUMBER", help=text)


_limit: Final = click.option("--limit", type=click.IntRange(min=1), metavar="NUMBER", help="At most so many jobs.")


def _time(name: str, text: str) -> Callable[[Command], Command]:
    return click.option(name, type=TIMESTAMP_OR_AGE, metavar="TIME", help=text)


#: Also of `tidemill dlq list`.
death_option: Final = click.option(
    "--death",
    "deaths",
    multiple=True,
    type=click.Choice([str(death) for death in DeathReason]),
    metavar="REASON",
    help="Jobs that died for this reason, such as 'attempts used up'; repeatable.",
)
_OPTIONS = (
    click.argument("ids", type=JOB_ID, nargs=-1, metavar="[ID]..."),
    click.option("--tenant", help="Jobs of this tenant."),
    click.option("--type", "types", multiple=True, metavar="TYPE", help="Jobs of this type; repeatable."),
    death_option,
    click.option("--error", metavar="CLASS", help="Jobs whose last error is of this class."),
    click.option(
        "--fingerprint", metavar="TEXT", help="Jobs with this error, as `tidemill dlq summary` shows it under ERROR."
    ),
    click.option("--tag", help="Jobs with this tag."),
    _time("--submitted-since", "Jobs submitted at this time or later."),
    _time("--submitted-until", "Jobs submitted before this time."),
    _time("--ended-since", "Jobs that ended at this time or later."),
    _time("--ended-until", "Jobs that ended before this time."),
)
