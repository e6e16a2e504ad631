"""`millrace status`: how the lanes stand, and whether anything waits for a person."""

from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Final

import click

from cli.installation import Installation
from cli.screen import say, show, show_json, show_table
from cli.wording import age, count
from shared.adapters.backlog import Backlog
from shared.application.redrive import Selection

#: Dead jobs are counted by reading them, so beyond this they are only "more".
_DEAD_COUNTED: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStatus:
    """One lane at this moment."""

    name: str
    queue: Backlog
    oldest: timedelta | None
    letters: int


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.pass_obj
def status(installation: Installation, *, as_json: bool) -> None:
    """Show how the lanes stand and count the dead jobs.

    For each lane: messages waiting, delayed and in flight, the age of the oldest, and the letters in its dead-letter
    queue.

    Depths come from SQS, which calls them approximate. The age comes from CloudWatch, a minute or two late; where it
    has none yet, a dash stands.
    """
    lanes = [_lane(installation, name) for name in installation.deployment.lanes]
    dead = sum(1 for _ in islice(installation.redriver.plan(Selection()), _DEAD_COUNTED + 1))
    if as_json:
        show_json(
            {
                "stack": installation.deployment.stack,
                "region": installation.deployment.region,
                "lanes": [_json(lane) for lane in lanes],
                "dead_jobs": min(dead, _DEAD_COUNTED),
                "dead_jobs_counted_to_the_end": dead <= _DEAD_COUNTED,
            }
        )
    else:
        _show(installation, lanes, dead)
    for lane in lanes:
        if lane.letters:
            say(
                f"The dead-letter queue of {lane.name} is not empty: `millrace dlq list` shows who died of what.",
                style="bold yellow",
            )
    if dead and not any(lane.letters for lane in lanes):
        say("There are dead jobs without letters: `millrace dlq list` shows them.", style="bold yellow")


def _lane(installation: Installation, name: str) -> LaneStatus:
    return LaneStatus(
        name=name,
        queue=installation.queue(name),
        oldest=installation.oldest_age(name),
        letters=installation.letters(name),
    )


def _show(installation: Installation, lanes: list[LaneStatus], dead: int) -> None:
    say(f"{installation.deployment.stack} in {installation.deployment.region}")
    titles = ("LANE", "WAITING", "DELAYED", "IN FLIGHT", "OLDEST", "DEAD LETTERS")
    rows = [
        (
            lane.name,
            *map(str, (lane.queue.waiting, lane.queue.delayed, lane.queue.in_flight)),
            age(lane.oldest),
            str(lane.letters),
        )
        for lane in lanes
    ]
    show_table(titles, rows, numbers=range(1, len(titles)))
    more = "more than " if dead > _DEAD_COUNTED else ""
    show(f"{more}{count(min(dead, _DEAD_COUNTED), 'dead job')}", style="bold" if dead else "")


def _json(lane: LaneStatus) -> dict[str, object]:
    return {
        "lane": lane.name,
        "waiting": lane.queue.waiting,
        "delayed": lane.queue.delayed,
        "in_flight": lane.queue.in_flight,
        "oldest_seconds": None if lane.oldest is None else lane.oldest.total_seconds(),
        "dead_letters": lane.letters,
    }
