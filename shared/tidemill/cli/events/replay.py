"""`tidemill replay`: give the stored events of a type to one consumer again."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import click

from tidemill.application.events.replay import Progress, ReplayVerdict
from tidemill.application.features import submit_features
from tidemill.application.job_types import JobType, JobTypes
from tidemill.cli.confirm import confirmed, require_confirmation
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import count, visible
from tidemill.cli.installation import Installation
from tidemill.cli.operations.audit import audited
from tidemill.cli.operations.operator_job import pace_of, require_success, result_of, watched
from tidemill.cli.options import json_option, reason_option
from tidemill.cli.output import say, show, show_json
from tidemill.cli.parameter_types import TIMESTAMP_OR_AGE
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.events.events import Consumption
from tidemill.domain.job import Job
from tidemill.domain.submission.submission import Submission
from tidemill.fan_out.replay_job import NAME_PATTERN, ReplayRequest
from tidemill.names import REPLAY_TENANT, REPLAY_TYPE, Lane
from tidemill.system import clock, ids

#: The job of a plan, which replays nothing.
_PLAN: Final = "count of the events"
#: Why an event made no job now, in the order in which they are shown.
_TEXTS: Final = {
    ReplayVerdict.EARLIER: "replayed before",
    ReplayVerdict.FILTERED: "not for this consumer",
    ReplayVerdict.REACHED: "reached it when published",
    ReplayVerdict.UNFINISHED: "not delivered yet",
    ReplayVerdict.UNORDERED: "in a group, for which --tenant and a listing are needed",
    ReplayVerdict.REFUSED: "refused by its payload model",
    ReplayVerdict.UNREADABLE: "unreadable",
}
COUNTED_FOR: Final = timedelta(minutes=1)


def _name(_: click.Context, __: click.Parameter, name: str) -> str:
    if name and not re.fullmatch(NAME_PATTERN, name):
        raise click.BadParameter("use at most 24 characters of a-z, 0-9, '.', '_' and '-'")
    return name


@click.command()
@click.argument("consumer", metavar="TYPE")
@click.option("--event", required=True, metavar="EVENT", help="The type of the events.")
@click.option("--version", type=click.IntRange(min=1), metavar="VERSION", help="Only events of this version.")
@click.option("--tenant", help="Only events of this tenant, in the order of their times.")
@click.option("--since", type=TIMESTAMP_OR_AGE, required=True, metavar="TIME", help="Published then or later: 2d.")
@click.option("--until", type=TIMESTAMP_OR_AGE, metavar="TIME", help="Published before; default: now.")
@click.option("--missed", is_flag=True, help="Only events that did not reach the consumer when they were published.")
@click.option(
    "--again",
    "name",
    default="",
    callback=_name,
    metavar="NAME",
    help="A second replay, also of events that a replay without this name has delivered.",
)
@pace_of("events")
@reason_option()
@click.option("--dry-run", is_flag=True, help="Count the events by reading alone, and submit no job.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation, and make no plan.")
@json_option("Print the result as one JSON object.")
@click.pass_obj
def replay(
    installation: Installation,
    *,
    consumer: str,
    event: str,
    version: int | None,
    tenant: str | None,
    since: datetime,
    until: datetime | None,
    missed: bool,
    name: str,
    rate: int,
    read_units: int,
    reason: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Give stored events to one consumer again.

    A job of lane bulk makes, for each event of the type that was published within the times and passes the filter of
    the consumer, one job of the consumer on lane bulk. No other consumer gets one. An event that the payload model of
    the consumer refuses is reported.

    Safe to repeat and to run concurrently: each event makes at most one job of the consumer, also in a replay of other
    times. --again NAME makes one more. Ctrl-C stops the display; the replay continues.

    Without --tenant, it scans the whole table, and leaves out the events of groups, whose order it does not know.

    --dry-run counts for at most a minute, and does not know the filter and the payload model of the consumer, which are
    in the deployed code. Without it, the command lets a job count exactly, and asks before it replays.

    `tidemill cancel --type TYPE --tag replay` stops the jobs of a wrong replay; with --again, --tag replay:NAME.
    `tidemill audit` shows who replayed what.

    Example: tidemill replay mail.confirm --event order.placed --since 2d --reason "the template was broken"
    """
    until = until or clock.now()
    if since >= until:
        raise click.UsageError("--since must be before --until, and in the past")
    require_confirmation(yes=yes or dry_run, alternative=", or --dry-run to count the events")
    request = ReplayRequest(
        consumer=consumer,
        event=event,
        version=version,
        tenant=tenant,
        since=since,
        until=until,
        missed=missed,
        name=name,
        dry_run=dry_run,
        rate=rate,
        read_units=read_units,
    )
    if dry_run:
        _count(installation, request, as_json=as_json)
        return
    if not yes:
        plan = _run(installation, request.model_copy(update={"dry_run": True}))
        require_success(plan, name=_PLAN)
        found = result_of(plan)
        say(f"{_summary(found, verb='to replay')}.")
        if not _number(found, ReplayVerdict.REPLAYED):
            if as_json:
                show_json(_as_json(plan, found))
            else:
                _show_failures(found)
                show("Nothing was changed.")
            _require_no_faults(found)
            return
        if not confirmed(f"Replay {count(_number(found, ReplayVerdict.REPLAYED), 'event')} to {consumer}?", yes=False):
            return
    result: dict[str, Any] = {}
    options = request.model_dump(mode="json", exclude_defaults=True)
    with audited(installation, "replay", options=options, counts=lambda: _counts(result), reason=reason):
        job = _run(installation, request)
        result |= result_of(job)
        if as_json:
            show_json(_as_json(job, result))
        else:
            _show(result)
        require_success(job, name="replay")
        _require_no_faults(result)


def _count(installation: Installation, request: ReplayRequest, *, as_json: bool) -> None:
    progress = counted(installation, request)
    found = progress.as_json()
    if as_json:
        show_json({"complete": progress.complete, **_counts(found), "failures": found["failures"]})
    else:
        summary = _summary(found, verb="to replay")
        _show(found, text=f"At most {summary}" if progress.complete else f"{summary}, so far")
    if not progress.complete:
        say(f"Stopped counting after {COUNTED_FOR.seconds} s; there may be more.")
    say(f"The deployed code may leave out some of them, by the filter and the payload model of {request.consumer}.")
    _require_no_faults(found)


def _run(installation: Installation, request: ReplayRequest) -> Job:
    payload = request.model_dump(mode="json")
    job = installation.replays.submit(Submission(type=REPLAY_TYPE, payload=payload)).job
    verb, name = ("to replay", _PLAN) if request.dry_run else ("replayed", "replay")
    return watched(installation, REPLAY_TENANT, job.id, name=name, summary=lambda saved: _summary(saved, verb=verb))


def _number(result: Mapping[str, Any], verdict: ReplayVerdict) -> int:
    number: int = result.get("counts", {}).get(verdict, 0)
    return number


def _counts(result: Mapping[str, Any]) -> dict[str, int]:
    return {verdict: _number(result, verdict) for verdict in ReplayVerdict}


def _summary(result: Mapping[str, Any], *, verb: str) -> str:
    others = [f"{_number(result, verdict)} {text}" for verdict, text in _TEXTS.items() if _number(result, verdict)]
    return ", ".join([f"{count(_number(result, ReplayVerdict.REPLAYED), 'event')} {verb}", *others])


def _show(result: Mapping[str, Any], *, text: str = "") -> None:
    show(f"{text or _summary(result, verb='replayed')}.")
    _show_failures(result)


def _as_json(job: Job, result: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": job.id, "state": job.state, **_counts(result), "failures": result.get("failures", [])}


def _show_failures(result: Mapping[str, Any]) -> None:
    for failure in result.get("failures", ()):
        show(f"event {visible(failure['id'])} of tenant {visible(failure['tenant'])}: {visible(failure['error'])}")


def _require_no_faults(result: Mapping[str, Any]) -> None:
    faults = _number(result, ReplayVerdict.REFUSED) + _number(result, ReplayVerdict.UNREADABLE)
    if faults:
        raise CommandError(
            f"{count(faults, 'event')} could not be given to the consumer",
            remedy="Let its payload model accept them, and run the command again: it replays only these.",
        )


def counted(installation: Installation, request: ReplayRequest) -> Progress:
    """Count the events of a replay by reading alone, for `--dry-run`.

    The filter and the payload model of the consumer are in the deployed code, so the true number may be smaller. The
    count is not complete if it has stopped after `COUNTED_FOR`.
    """
    submit = submit_features.submit(
        store=installation.store,
        payloads=installation.payloads,
        job_types=JobTypes({request.consumer: _stand_in(request)}),
        clock=clock.now,
        new_id=ids.new_token,
    )
    replayer = installation.replayer(
        tenant=request.tenant, rate=request.rate, read_units=request.read_units, submit=submit
    )
    ends = clock.now() + COUNTED_FOR
    return replayer.run(request.wanted, Progress(), time_left=lambda: ends - clock.now(), save=lambda _progress: None)


def _stand_in(request: ReplayRequest) -> JobType:
    """The consumer, as it would be without a filter and with a model that takes any data."""
    return JobType(
        name=request.consumer,
        lane=Lane.BULK,
        retry=RetryPolicy(max_attempts=1),
        parse=lambda data: data,
        handler=lambda _payload, _run: None,
        consumes=(Consumption(type=request.event),),
    )
