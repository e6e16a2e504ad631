"""`tidemill status`: how the lanes stand, and whether anything waits for a person."""

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

#: Jobs are counted by reading them, so beyond this they are only "more".
_COUNTED: Final = 1000
_EVER: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatus:
    """One lane at this moment."""

    name: str
    queue: Backlog
    oldest: timedelta | None
    dead_letters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCounts:
    """Jobs of all lanes that wait for the clock or for a person."""

    scheduled: int
    dead: int
    #: Groups that stand for a dead job among those counted, until it is redriven or cancelled.
    standing: int


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.pass_obj
def status(installation: Installation, *, as_json: bool) -> None:
    """Show how the lanes stand, and how many jobs wait.

    For each lane: messages waiting, delayed and in flight, the age of the oldest, and the letters in its dead-letter
    queue. Then the jobs that wait for the clock, the dead ones that wait for a person, and the groups
    that stand for one of these.

    Depths come from SQS, which calls them approximate. The age comes from CloudWatch, a minute or two late; where it
    has none yet, a dash stands.
    """
    lanes = [_lane(installation, name) for name in installation.deployment.lanes]
    jobs = _jobs(installation)
    if as_json:
        show_json(
            {
                "stack": installation.deployment.stack,
                "region": installation.deployment.region,
                "lanes": [_json(lane) for lane in lanes],
                "scheduled_jobs": min(jobs.scheduled, _COUNTED),
                "scheduled_jobs_counted_to_the_end": jobs.scheduled <= _COUNTED,
                "dead_jobs": min(jobs.dead, _COUNTED),
                "dead_jobs_counted_to_the_end": jobs.dead <= _COUNTED,
                "standing_groups": jobs.standing,
            }
        )
    else:
        _show(installation, lanes, jobs)
    for lane in lanes:
        if lane.dead_letters:
            say(
                f"The dead-letter queue of {lane.name} is not empty: `tidemill dlq list` shows who died of what.",
                style="bold yellow",
            )
    if jobs.dead and not any(lane.dead_letters for lane in lanes):
        say("There are dead jobs without letters: `tidemill dlq list` shows them.", style="bold yellow")


def _jobs(installation: Installation) -> JobCounts:
    dead = list(islice(installation.redriver.plan(Selection()), _COUNTED + 1))
    return JobCounts(
        scheduled=sum(1 for _ in islice(installation.store.scheduled(before=_EVER), _COUNTED + 1)),
        dead=len(dead),
        standing=len({(job.tenant, job.group) for job in dead if job.group and job.blocks}),
    )


def _lane(installation: Installation, name: str) -> LaneStatus:
    return LaneStatus(
        name=name,
        queue=installation.queue(name),
        oldest=installation.oldest_age(name),
        dead_letters=installation.dead_letters(name),
    )


def _show(installation: Installation, lanes: list[LaneStatus], jobs: JobCounts) -> None:
    say(f"{installation.deployment.stack} in {installation.deployment.region}")
    titles = ("LANE", "WAITING", "DELAYED", "IN FLIGHT", "OLDEST", "DEAD LETTERS")
    rows = [
        (
            lane.name,
            *map(str, (lane.queue.waiting, lane.queue.delayed, lane.queue.in_flight)),
            age(lane.oldest),
            str(lane.dead_letters),
        )
        for lane in lanes
    ]
    show_table(titles, rows, numbers=range(1, len(titles)))
    show(_counted(jobs.scheduled, "scheduled job"))
    standing = f", and {count(jobs.standing, 'group')} standing for one" if jobs.standing else ""
    show(_counted(jobs.dead, "dead job") + standing, style="bold" if jobs.dead else "")


def _counted(number: int, noun: str) -> str:
    return ("more than " if number > _COUNTED else "") + count(min(number, _COUNTED), noun)


def _json(lane: LaneStatus) -> dict[str, object]:
    return {
        "lane": lane.name,
        "waiting": lane.queue.waiting,
        "delayed": lane.queue.delayed,
        "in_flight": lane.queue.in_flight,
        "oldest_seconds": None if lane.oldest is None else lane.oldest.total_seconds(),
        "dead_letters": lane.dead_letters,
    }
