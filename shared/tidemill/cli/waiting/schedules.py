"""`tidemill schedules`: the periodic types. List them, run one now, disable and enable its schedule."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import click

from tidemill.application.waiting.periodic import REQUESTED_TAG
from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import DASH, readable_time, timestamp, visible
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.options import json_option, reason_option, yes_option
from tidemill.cli.output import say, show, show_change, show_json, show_json_lines, show_table
from tidemill.cli.parameter_types import UNTIL
from tidemill.domain.job import Job
from tidemill.domain.operations.runtime_configuration import PAUSE_PREFIX
from tidemill.domain.waiting.pauses import Pause, Scope, Target
from tidemill.domain.waiting.schedule_times import Rate, parse
from tidemill.dynamodb.listing import Wanted
from tidemill.dynamodb.listing_entries import Position
from tidemill.names import SCHEDULE_TENANT, TICK_REQUESTED, TICK_SCHEDULED_AT, TICK_TYPE
from tidemill.operator.deployments.function_call import ask
from tidemill.system import clock

#: The last run of a type is looked for among the jobs of this time.
_LOOKS_BACK: Final = timedelta(days=32)
#: About 50,000 documents, which a type that runs each minute leaves in a month.
_MOST_PAGES: Final = 100
#: Instead of a next time: no further one comes, or the expression cannot be read.
_NEVER, _INVALID = "never", "invalid"
_Next = datetime | str | None


@click.group()
def schedules() -> None:
    """List, run, disable and enable periodic job types."""


@schedules.command("list")
@json_option("Print each schedule as a line of JSON.")
@click.pass_obj
def list_(installation: Installation, *, as_json: bool) -> None:
    """List the periodic types with their next and last run.

    Times are in UTC. The next run of a rate is counted from the last one that no operator asked for. The last run comes
    from the listing index: a stage without it shows none. The next run is `never` after the last time of a cron
    expression, and `invalid` for a schedule that this version of Tidemill would refuse.

    A schedule is paused while its type is, or the lane of its last run, or the tenant of all periodic jobs.
    """
    now = clock.now()
    pauses = installation.configurator.read().pauses(now)
    keeps_listing = installation.keeps_listing
    rows = []
    for type_, expression in sorted(installation.deployment.schedules.items()):
        jobs = _jobs(installation, type_, now) if keeps_listing else iter(())
        last = next(jobs, None)
        pause = _pause(type_, last, pauses)
        rows.append((type_, expression, None if pause else _next(expression, last, jobs, now), last, pause))
    if as_json:
        show_json_lines(_as_json(*row) for row in rows)
        return
    titles = ("TYPE", "SCHEDULE (UTC)", "STATE", "NEXT", "LAST", "LAST JOB")
    show_table(titles, [_row(*row) for row in rows])


@schedules.command()
@click.argument("type_", metavar="TYPE")
@reason_option("Why, for the record.")
@yes_option
@json_option("Print the job as one JSON object.")
@click.pass_obj
def run(installation: Installation, type_: str, *, reason: str, yes: bool, as_json: bool) -> None:
    """Submit one job of the periodic TYPE now, as its schedule does.

    The schedule itself goes on. It also works while the schedule is disabled. A second command within the same second
    finds the job of the first. `tidemill audit` shows who ran what.
    """
    require_confirmation(yes=yes)
    _require_periodic(installation, type_)
    if not confirmed(f"Run {type_} now?", yes=yes):
        return
    counts = {"submitted": 0}
    with audited(installation, "schedules run", options={"type": type_}, counts=lambda: counts, reason=reason):
        job = _submit(installation, type_)
        counts["submitted"] = 1
    if as_json:
        show_json(dict(job))
    else:
        show(job["id"])


@schedules.command()
@click.argument("type_", metavar="TYPE")
@reason_option("Why, for the record.")
@click.option("--until", type=UNTIL, help="The end: 2h from now, the next 14:00 UTC, or a timestamp.")
@yes_option
@json_option("Print the result as one JSON object.")
@click.pass_obj
def disable(
    installation: Installation, type_: str, *, reason: str, until: datetime | None, yes: bool, as_json: bool
) -> None:
    """Submit no further job of the periodic TYPE on its schedule.

    It ends with `tidemill schedules enable`, or by itself at --until. Jobs that were submitted before go on. It acts
    within 10 seconds, or within 60 where the stage has AppConfig as its source, and deployments keep it.

    The times meanwhile are skipped. Afterwards one job makes up for them, unless the type says catch_up=False.
    """
    require_confirmation(yes=yes)
    _require_periodic(installation, type_)
    present = installation.configurator.read()
    end = f"until {readable_time(until)}" if until else "until it is enabled"
    say(f"Disable the schedule of {type_} {end}.")
    if not confirmed("Disable it now?", yes=yes):
        return
    name = PAUSE_PREFIX + str(_target(type_))
    changed = installation.configurator.set(present, name, {}, by=installation.caller, reason=reason, until=until)
    show_change({"disabled": type_, "until": until and timestamp(until), "version": changed.version}, as_json=as_json)


@schedules.command()
@click.argument("type_", metavar="TYPE")
@reason_option("Why, for the record.")
@yes_option
@json_option("Print the result as one JSON object.")
@click.pass_obj
def enable(installation: Installation, type_: str, *, reason: str, yes: bool, as_json: bool) -> None:
    """Enable the schedule of TYPE again.

    If one of its times fell into the pause, one job makes up for them within a minute or two, unless the type says
    catch_up=False.
    """
    require_confirmation(yes=yes)
    present = installation.configurator.read()
    target = _target(type_)
    disabled = [pause.target for pause in present.pauses(clock.now()) if pause.target.scope is Scope.SCHEDULE]
    if target not in disabled:
        names = ", ".join(one.name for one in disabled) or "nothing"
        raise CommandError(f"the schedule of {type_} is not disabled", remedy=f"Disabled at present: {names}.")
    if not confirmed(f"Enable the schedule of {type_} now?", yes=yes):
        return
    changed = installation.configurator.remove(
        present, PAUSE_PREFIX + str(target), by=installation.caller, reason=reason
    )
    show_change({"enabled": type_, "version": changed.version}, as_json=as_json)


def _target(type_: str) -> Target:
    return Target(scope=Scope.SCHEDULE, name=type_)


def _require_periodic(installation: Installation, type_: str) -> None:
    known = installation.deployment.schedules
    if type_ not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise CommandError(f"{visible(type_)} is not a periodic type", remedy=f"The periodic types are: {listed}.")


def _submit(installation: Installation, type_: str) -> Mapping[str, str]:
    """The id and the state of the job. The function `tick` submits it, so the deployed code checks the type."""
    event = {TICK_TYPE: type_, TICK_SCHEDULED_AT: f"{clock.now():%Y-%m-%dT%H:%M:%SZ}", TICK_REQUESTED: "true"}
    decoded = ask(installation.deployment, "tick", event)
    return {"id": str(decoded["id"]), "state": str(decoded["state"])}


def _jobs(installation: Installation, type_: str, now: datetime) -> Iterator[Job]:
    """The newest first."""
    wanted = Wanted(tenant=SCHEDULE_TENANT, since=now - _LOOKS_BACK, type=type_)
    below: Position | None = Position(now + _LOOKS_BACK)
    for _ in range(_MOST_PAGES):
        if below is None:
            return
        # A page ends early where the jobs of other types lie before this one's.
        page = installation.listing.page(wanted, below=below, limit=1, now=now)
        yield from page.jobs
        below = page.end


def _pause(type_: str, last: Job | None, pauses: Sequence[Pause]) -> Pause | None:
    """The pause that stops the schedule, first that of the schedule itself. Only a job tells the lane of a type."""
    stops = [pause for pause in pauses if pause.target.stops_schedule(type_, last.lane if last else None)]
    return min(stops, key=lambda pause: pause.target.scope is not Scope.SCHEDULE, default=None)


def _next(expression: str, last: Job | None, earlier: Iterator[Job], now: datetime) -> _Next:
    """The time, or why none comes; None if it is not known. `earlier` are the jobs before `last`."""
    try:
        schedule = parse(expression)
    except ValueError as error:
        # Another version of the code accepted it. One such schedule must not hide the others.
        say(visible(str(error)))
        return _INVALID
    if not isinstance(schedule, Rate):
        return schedule.next_time(after=now) or _NEVER
    own = last
    while own and REQUESTED_TAG in own.tags:
        own = next(earlier, None)
    every = schedule.period
    return None if own is None else own.created_at + ((now - own.created_at) // every + 1) * every


def _row(type_: str, expression: str, next_: _Next, last: Job | None, pause: Pause | None) -> tuple[str, ...]:
    return (
        type_,
        expression,
        _state(pause),
        readable_time(next_) if isinstance(next_, datetime) else next_ or DASH,
        f"{readable_time(last.created_at)} {last.state}" if last else DASH,
        last.id if last else DASH,
    )


def _state(pause: Pause | None) -> str:
    if pause is None:
        return "enabled"
    if pause.target.scope is Scope.SCHEDULE:
        return f"disabled by {pause.by}"
    return f"paused by {pause.by}: {pause.target}"


def _as_json(type_: str, expression: str, next_: _Next, last: Job | None, pause: Pause | None) -> dict[str, Any]:
    return {
        "type": type_,
        "schedule": expression,
        "time_zone": "UTC",
        "enabled": pause is None,
        "stopped_by": pause and str(pause.target),
        "disabled_by": pause and pause.by,
        "since": pause and timestamp(pause.since),
        "until": timestamp(pause.until) if pause and pause.until else None,
        "reason": (pause.reason or None) if pause else None,
        "next": timestamp(next_) if isinstance(next_, datetime) else None,
        "no_next": next_ if isinstance(next_, str) else None,
        "last": None if last is None else {"id": last.id, "at": timestamp(last.created_at), "state": last.state},
    }
