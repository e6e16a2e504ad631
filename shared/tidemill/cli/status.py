"""`tidemill status`: the depth of each lane, the jobs that wait for their time or an operator, and the schedules."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

import click

from tidemill.application.redrive import Selection
from tidemill.cli.formatting import age, count
from tidemill.cli.installation import Installation
from tidemill.cli.output import say, show, show_json, show_table
from tidemill.sqs.queue_depth import Backlog

#: Counting reads each job, so the command stops here and prints "more than".
_COUNT_LIMIT: Final = 1000
_MAX_TIME: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatus:
    """One lane at one moment."""

    name: str
    queue: Backlog
    #: None for an empty lane, and without a recent value.
    oldest: timedelta | None
    dlq_messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCounts:
    """Jobs of all lanes. A number above the limit means that more exist."""

    scheduled: int
    dead: int
    #: Groups that a dead job among those counted blocks, until an operator redrives or cancels it.
    blocked_groups: int


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the status as one JSON object.")
@click.pass_obj
def status(installation: Installation, *, as_json: bool) -> None:
    """Show lane depths and the numbers of scheduled and dead jobs.

    For each lane: the messages waiting, delayed and in flight, the age of the oldest message, and the messages in its
    dead-letter queue. Then the scheduled jobs, the dead jobs, and the groups that a dead job blocks. Then the periodic
    job types with their schedules, in UTC.

    SQS reports the numbers of messages, which are approximate. CloudWatch reports the age with a delay of one to two
    minutes; a dash means that the lane is empty, or that it has no recent value.
    """
    lanes = [_lane(installation, name) for name in installation.deployment.lanes]
    jobs = _jobs(installation)
    if as_json:
        show_json(
            {
                "stack": installation.deployment.stack,
                "region": installation.deployment.region,
                "lanes": [_json(lane) for lane in lanes],
                "scheduled_jobs": min(jobs.scheduled, _COUNT_LIMIT),
                "scheduled_jobs_exact": jobs.scheduled <= _COUNT_LIMIT,
                "dead_jobs": min(jobs.dead, _COUNT_LIMIT),
                "dead_jobs_exact": jobs.dead <= _COUNT_LIMIT,
                "blocked_groups": jobs.blocked_groups,
                "schedules": installation.deployment.schedules,
            }
        )
    else:
        _show(installation, lanes, jobs)
    for lane in lanes:
        if lane.dlq_messages:
            say(
                f"The dead-letter queue of {lane.name} is not empty: `tidemill dlq list` shows the dead jobs.",
                style="bold yellow",
            )
    if jobs.dead and not any(lane.dlq_messages for lane in lanes):
        say(
            "Dead jobs exist, but every dead-letter queue is empty: `tidemill dlq list` shows the jobs.",
            style="bold yellow",
        )


def _jobs(installation: Installation) -> JobCounts:
    dead = list(islice(installation.redriver.plan(Selection()), _COUNT_LIMIT + 1))
    return JobCounts(
        scheduled=sum(1 for _ in islice(installation.store.scheduled(before=_MAX_TIME), _COUNT_LIMIT + 1)),
        dead=len(dead),
        blocked_groups=len({(job.tenant, job.group) for job in dead if job.group and job.blocks}),
    )


def _lane(installation: Installation, name: str) -> LaneStatus:
    queue = installation.queue_depth(name)
    return LaneStatus(
        name=name,
        queue=queue,
        # CloudWatch is minutes late: it still reports the age of a message that has left.
        oldest=installation.oldest_age(name) if queue.total else None,
        dlq_messages=installation.dlq_messages(name),
    )


def _show(installation: Installation, lanes: list[LaneStatus], jobs: JobCounts) -> None:
    say(f"{installation.deployment.stack} in {installation.deployment.region}")
    titles = ("LANE", "WAITING", "DELAYED", "IN FLIGHT", "OLDEST", "DLQ MESSAGES")
    rows = [
        (
            lane.name,
            *map(str, (lane.queue.waiting, lane.queue.delayed, lane.queue.in_flight)),
            age(lane.oldest),
            str(lane.dlq_messages),
        )
        for lane in lanes
    ]
    show_table(titles, rows, numbers=range(1, len(titles)))
    show(_counted(jobs.scheduled, "scheduled job"))
    blocked = f", {count(jobs.blocked_groups, 'group')} blocked by a dead job" if jobs.blocked_groups else ""
    show(_counted(jobs.dead, "dead job") + blocked, style="bold" if jobs.dead else "")
    if schedules := sorted(installation.deployment.schedules.items()):
        show_table(("PERIODIC TYPE", "SCHEDULE (UTC)"), schedules)


def _counted(number: int, noun: str) -> str:
    return ("more than " if number > _COUNT_LIMIT else "") + count(min(number, _COUNT_LIMIT), noun)


def _json(lane: LaneStatus) -> dict[str, object]:
    return {
        "lane": lane.name,
        "waiting": lane.queue.waiting,
        "delayed": lane.queue.delayed,
        "in_flight": lane.queue.in_flight,
        "oldest_seconds": None if lane.oldest is None else lane.oldest.total_seconds(),
        "dlq_messages": lane.dlq_messages,
    }
