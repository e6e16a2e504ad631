"""One hot group: more submissions than it can take are refused soon and leave nothing, and no other job waits for it.

The functions run as they ship, in the simulated AWS without faults. Transactions hold their items, so those that meet
conflict, and each call takes 2 to 22 ms of virtual time. The figures are counts and virtual times, the same each run.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from random import Random
from typing import Final

from tests.simulation.actors.api_gateway import ACCEPTED, UNAVAILABLE, as_json, ask
from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.deployment import Deployment
from tests.simulation.world.faults import Faults
from tests.simulation.world.lambda_environments import COLD_START_MS
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.domain.states import State
from tidemill.domain.submission import Submission
from tidemill.dynamodb.group_items import HEAD_PREFIX
from tidemill.dynamodb.groups import TRIED_FOR
from tidemill.dynamodb.pass_items import PREFIX as PASS_PREFIX
from tidemill.names import PAYLOAD_PREFIX

HOT_PER_SECOND: Final = 200
CALM_PER_SECOND: Final = 20
SECONDS: Final = 3
#: By then every function has been started once.
WARM_AFTER_MS: Final = 1_500
#: A submission must not meet another between its read of the tail and its commit: a response, a request and the commit
#: of the transaction, 12.5 ms on average. So the group takes at most 80 a second, and optimistic retries reach half.
ACCEPTED_PER_SECOND: Final = 40
#: Besides its tries, a refused submission stores its payload, tries a last time, and deletes its payload: five calls.
FIVE_CALLS_MS: Final = 5 * 22
#: Ended in virtual time long after the last submission.
ENDS_AFTER_MS: Final = 120_000
HOT: Final = "111122223333:AROAHOT"
CALM: Final = "111122223333:AROACALM"


@dataclass
class Outcome:
    """What became of the submissions."""

    #: Milliseconds until the response, by status.
    hot: dict[int, list[int]] = field(default_factory=dict)
    #: Milliseconds from the response to the message, for each calm job once the functions are warm.
    dispatched: list[int] = field(default_factory=list)
    #: Jobs of the hot group by position, and their runs in order.
    positions: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    messages: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    #: Items that are neither a job nor the head of a group.
    left: list[str] = field(default_factory=list)


@cache
def outcome(hot_per_second: int) -> Outcome:
    faults = Faults(Random(1))
    faults.rates = {}
    came = Outcome()
    with World(1, Deployment(varied=False), faults=faults) as world:
        scheduler = world.scheduler
        EventBridgeScheduler(world).begin()
        accepted_ms: dict[str, int] = {}
        warm_ms = scheduler.now_ms + WARM_AFTER_MS

        def submit(tenant: str, group: str | None, number: int) -> None:
            began_ms = scheduler.now_ms
            # Large enough to be stored apart, so that a refused submission could leave it behind.
            submission = Submission(type="sim.plain", payload={"padding": "x" * 500, "count": number}, group=group)
            answer = ask(world, "submit", "POST", "/jobs", tenant=tenant, body=as_json(submission))
            assert answer is not None
            if group:
                came.hot.setdefault(answer.status, []).append(scheduler.now_ms - began_ms)
            elif began_ms >= warm_ms:
                accepted_ms[answer.body["id"]] = scheduler.now_ms

        for tenant, group, rate in ((HOT, "hot", hot_per_second), (CALM, None, CALM_PER_SECOND)):
            for number in range(rate * SECONDS):
                caller = Process(f"caller {tenant} {number}")
                scheduler.spawn(caller, partial(submit, tenant, group, number), delay_ms=1000 * number // rate)
        scheduler.run(until_ms=scheduler.now_ms + ENDS_AFTER_MS, most_steps=10**7)
        _look(world, came, accepted_ms)
    return came


def _look(world: World, came: Outcome, accepted_ms: Mapping[str, int]) -> None:
    for at_ms, who, what in world.trace.lines:
        if who in world.lanes and " takes " in f" {what}":
            job_id = json.loads(what[what.index("{") :])["id"]
            came.messages[job_id] += 1
            if came.messages[job_id] == 1 and job_id in accepted_ms:
                came.dispatched.append(at_ms - accepted_ms[job_id])
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


def test_the_group_takes_what_one_item_can_take() -> None:
    accepted = outcome(HOT_PER_SECOND).hot[ACCEPTED]

    assert len(accepted) >= ACCEPTED_PER_SECOND * SECONDS


def test_the_others_are_refused_within_a_second_and_leave_nothing() -> None:
    came = outcome(HOT_PER_SECOND)
    refused = came.hot[UNAVAILABLE]

    assert set(came.hot) == {ACCEPTED, UNAVAILABLE}
    assert len(refused) == HOT_PER_SECOND * SECONDS - len(came.hot[ACCEPTED])
    assert max(refused) <= TRIED_FOR.total_seconds() * 1000 + FIVE_CALLS_MS + COLD_START_MS[1]
    assert len(came.positions) == len(came.hot[ACCEPTED])
    assert came.left == []


def test_the_accepted_jobs_run_once_in_their_order() -> None:
    came = outcome(HOT_PER_SECOND)

    assert came.ran == came.positions
    assert set(came.states) == {State.SUCCEEDED}


def test_no_other_job_waits_for_the_group() -> None:
    came, alone = outcome(HOT_PER_SECOND), outcome(0)

    assert len(came.dispatched) == len(alone.dispatched) >= CALM_PER_SECOND
    assert max(came.dispatched) <= max(alone.dispatched)


def test_each_job_has_one_message() -> None:
    came = outcome(HOT_PER_SECOND)

    assert set(came.messages.values()) == {1}
