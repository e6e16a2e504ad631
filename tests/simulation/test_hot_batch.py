"""One hot page of a batch: the submissions that conflict on it are refused soon, and no other job waits for them.

The keys are chosen so that all jobs are on one of the 32 pages: 200 a second there are what 6,400 a second are to the
whole batch. As in `test_hot_group`, the functions run as they ship, and the times are virtual.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import count, islice
from random import Random
from typing import Final

from tests.simulation.actors.api_gateway import ACCEPTED, UNAVAILABLE, ask
from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.deployment import Deployment
from tests.simulation.world.faults import Faults
from tests.simulation.world.lambda_environments import COLD_START_MS
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.application.job_ids import keyed_job_id
from tidemill.domain.batches import page_number
from tidemill.dynamodb.batch_pages import PAGE_PREFIX
from tidemill.dynamodb.groups import TRIED_FOR

HOT_PER_SECOND: Final = 200
CALM_PER_SECOND: Final = 20
SECONDS: Final = 2
#: By then every function has been started once, and the batch is open.
WARM_MS: Final = 1_500
#: A page takes some dozens a second, as docs/guides/batches.md says.
ACCEPTED_PER_SECOND: Final = 24
#: Besides its tries: the read of the batch, the payload, a last try, and the deletion of the payload.
FIVE_CALLS_MS: Final = 5 * 22
ENDS_AFTER_MS: Final = 60_000
HOT: Final = "111122223333:AROAHOT"
CALM: Final = "111122223333:AROACALM"


@dataclass
class Outcome:
    #: Milliseconds until the response, by status.
    hot: dict[int, list[int]] = field(default_factory=dict)
    #: Milliseconds from the response to the message, for each calm job.
    dispatched: list[int] = field(default_factory=list)
    #: The jobs of the batch by their documents, and by its pages.
    jobs: set[str] = field(default_factory=set)
    listed: int = 0


def _keys() -> Iterator[str]:
    """Of jobs that are all on one page."""
    return (key for key in map(str, count()) if page_number(keyed_job_id(HOT, key)) == 0)


@cache
def outcome(*, batched: bool) -> Outcome:
    """Of the same submissions, to a batch or to none."""
    faults = Faults(Random(1))
    faults.rates = {}
    came = Outcome()
    with World(1, Deployment(varied=False), faults=faults) as world:
        scheduler = world.scheduler
        EventBridgeScheduler(world).begin()
        opened: list[str] = []
        accepted_ms: dict[str, int] = {}

        def open_batch() -> None:
            answer = ask(world, "submit", "POST", "/batches", tenant=HOT, body={})
            assert answer is not None
            opened.append(answer.body["id"])

        def submit(tenant: str, key: str) -> None:
            began_ms = scheduler.now_ms
            batch = opened[0] if batched and tenant == HOT else None
            body = {"type": "sim.plain", "payload": {}} | ({"batch": batch} if batch else {})
            answer = ask(world, "submit", "POST", "/jobs", tenant=tenant, key=key, body=body)
            assert answer is not None
            if tenant == HOT:
                came.hot.setdefault(answer.status, []).append(scheduler.now_ms - began_ms)
            else:
                accepted_ms[answer.body["id"]] = scheduler.now_ms

        scheduler.spawn(Process("opener"), open_batch)
        for tenant, rate in ((HOT, HOT_PER_SECOND), (CALM, CALM_PER_SECOND)):
            for number, key in enumerate(islice(_keys(), rate * SECONDS)):
                caller = Process(f"caller {tenant} {number}")
                scheduler.spawn(caller, partial(submit, tenant, key), delay_ms=WARM_MS + 1000 * number // rate)
        scheduler.run(until_ms=scheduler.now_ms + ENDS_AFTER_MS, most_steps=10**7)
        _look(world, came, accepted_ms)
    return came


def _look(world: World, came: Outcome, accepted_ms: dict[str, int]) -> None:
    for at_ms, who, what in world.trace.lines:
        if who in world.lanes and " takes " in f" {what}":
            accepted = accepted_ms.pop(json.loads(what[what.index("{") :])["id"], None)
            came.dispatched += [] if accepted is None else [at_ms - accepted]
    for (key,), item in world.jobs.items.items():
        if "batch" in item:
            came.jobs.add(key)
        if key.startswith(PAGE_PREFIX):
            came.listed += len(item["members"]["SS"])


def test_a_page_takes_some_dozens_of_jobs_a_second() -> None:
    assert len(outcome(batched=True).hot[ACCEPTED]) >= ACCEPTED_PER_SECOND * SECONDS


def test_the_others_are_refused_soon_and_may_come_again() -> None:
    came = outcome(batched=True)

    assert set(came.hot) == {ACCEPTED, UNAVAILABLE}
    assert max(came.hot[UNAVAILABLE]) <= TRIED_FOR.total_seconds() * 1000 + FIVE_CALLS_MS + COLD_START_MS[1]


def test_the_accepted_jobs_are_members_and_the_refused_ones_left_nothing() -> None:
    came = outcome(batched=True)

    assert came.listed == len(came.jobs) == len(came.hot[ACCEPTED])


def test_no_other_job_waits_for_the_batch() -> None:
    came, without = outcome(batched=True), outcome(batched=False)

    assert len(came.dispatched) == len(without.dispatched) == CALM_PER_SECOND * SECONDS
    assert max(came.dispatched) <= max(without.dispatched)
