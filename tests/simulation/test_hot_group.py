"""One hot group: submissions beyond what it takes are refused soon and leave nothing, and no other job waits for it."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from tests.simulation.actors.api_gateway import ACCEPTED, UNAVAILABLE, Answer, as_json
from tests.simulation.flood import CALM_PER_SECOND, HOT_PER_SECOND, REFUSED_WITHIN_MS, Flood, flooded, posted
from tests.simulation.world.world import World
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.groups.group_items import HEAD_PREFIX
from tidemill.dynamodb.passes.pass_items import PREFIX as PASS_PREFIX
from tidemill.names import PAYLOAD_PREFIX

SECONDS: Final = 3
#: A submission must not meet another between its read of the tail and its commit: a response, a request and the commit
#: of the transaction, 12.5 ms on average. So the group takes at most 80 a second, and optimistic retries reach half.
ACCEPTED_PER_SECOND: Final = 40
#: Ended in virtual time long after the last submission.
ENDS_AFTER_MS: Final = 120_000


@dataclass
class Outcome:
    flood: Flood
    #: Jobs of the hot group by position, and their runs in order.
    positions: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    #: Items that are neither a job nor the head of a group.
    left: list[str] = field(default_factory=list)


@cache
def outcome(hot_per_second: int) -> Outcome:
    came = Outcome(Flood())

    def submit(world: World, number: int) -> Answer | None:
        # Large enough to be stored apart, so that a refused submission could leave it behind.
        payload = {"padding": "x" * 500, "count": number}
        return posted(world, as_json(Submission(type="sim.plain", payload=payload, group="hot")))

    def look(world: World) -> None:
        for (key,), item in world.jobs.items.items():
            if "state" in item:
                came.states[item["state"]["S"]] += 1
            elif not key.startswith((HEAD_PREFIX, PAYLOAD_PREFIX, PASS_PREFIX)):
                came.left.append(key)
        jobs = {key[0]: item for key, item in world.jobs.items.items() if "group" in item}
        came.positions = sorted(jobs, key=lambda key: int(jobs[key]["sequence"]["N"]))
        came.ran = [run.key for run in world.runs if run.group]
        payloads = sum(key.startswith(PAYLOAD_PREFIX) for (key,) in world.jobs.items)
        came.left += ["a payload"] * (payloads - sum("payload_at" in item for item in world.jobs.items.values()))

    came.flood = flooded(submit, seconds=SECONDS, ends_after_ms=ENDS_AFTER_MS, look=look, hot_per_second=hot_per_second)
    return came


def test_the_group_takes_what_one_item_can_take() -> None:
    accepted = outcome(HOT_PER_SECOND).flood.hot[ACCEPTED]

    assert len(accepted) >= ACCEPTED_PER_SECOND * SECONDS


def test_the_others_are_refused_within_a_second_and_leave_nothing() -> None:
    came = outcome(HOT_PER_SECOND)
    hot = came.flood.hot

    assert set(hot) == {ACCEPTED, UNAVAILABLE}
    assert len(hot[UNAVAILABLE]) == HOT_PER_SECOND * SECONDS - len(hot[ACCEPTED])
    assert max(hot[UNAVAILABLE]) <= REFUSED_WITHIN_MS
    assert len(came.positions) == len(hot[ACCEPTED])
    assert came.left == []


def test_the_accepted_jobs_run_once_in_their_order() -> None:
    came = outcome(HOT_PER_SECOND)

    assert came.ran == came.positions
    assert set(came.states) == {State.SUCCEEDED}


def test_no_other_job_waits_for_the_group() -> None:
    came, alone = outcome(HOT_PER_SECOND).flood.dispatched, outcome(0).flood.dispatched

    assert len(came) == len(alone) >= CALM_PER_SECOND
    assert max(came) <= max(alone)


def test_each_job_has_one_message() -> None:
    assert set(outcome(HOT_PER_SECOND).flood.messages.values()) == {1}
