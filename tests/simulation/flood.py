"""A flood beside a few other jobs, in the simulated AWS without faults: how it is answered, and whom it delays.

The functions run as they ship. Transactions hold their items, so those that meet conflict, and each call takes 2 to
22 ms of virtual time. The figures are counts and virtual times, the same each run.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from tests.simulation.actors.api_gateway import Answer, ask
from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.deployment import Deployment
from tests.simulation.world.faults import no_faults
from tests.simulation.world.lambda_environments import COLD_START_MS
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.dynamodb.groups.groups import TRIED_FOR

HOT: Final = "111122223333:AROAHOT"
_CALM: Final = "111122223333:AROACALM"
HOT_PER_SECOND: Final = 200
CALM_PER_SECOND: Final = 20
#: The flood begins when every function has been started once.
_WARM_MS: Final = 1_500
#: So many jobs reach every part of the stream, and start a publisher for each.
_WARMED: Final = 40
#: A refused submission tries for a time, once more, and makes four other calls.
_FIVE_CALLS_MS: Final = 5 * 22
REFUSED_WITHIN_MS: Final = TRIED_FOR.total_seconds() * 1000 + _FIVE_CALLS_MS + COLD_START_MS[1]

#: Makes the request with this number.
Request = Callable[[World, int], Answer | None]


@dataclass
class Flood:
    """What became of it."""

    #: Milliseconds until the response, by status.
    hot: dict[int, list[int]] = field(default_factory=dict)
    #: Milliseconds from the response to the message, for each job of the calm tenant.
    dispatched: list[int] = field(default_factory=list)
    #: By the id of their job.
    messages: Counter[str] = field(default_factory=Counter)


def posted(world: World, body: dict[str, Any], *, tenant: str = HOT, key: str | None = None) -> Answer | None:
    return ask(world, "submit", "POST", "/jobs", tenant=tenant, key=key, body=body)


def flooded(
    hot: Request,
    *,
    seconds: int,
    ends_after_ms: int,
    look: Callable[[World], None],
    hot_per_second: int = HOT_PER_SECOND,
    first: Callable[[World], None] = lambda _: None,
) -> Flood:
    """`first` runs before the flood, and `look` reads the world long after it."""
    faults = no_faults(Random(1))
    came = Flood()
    with World(1, Deployment(varied=False), faults=faults) as world:
        scheduler = world.scheduler
        EventBridgeScheduler(world).begin()
        accepted_ms: dict[str, int] = {}

        def submit_hot(number: int) -> None:
            began_ms = scheduler.now_ms
            answer = hot(world, number)
            assert answer is not None
            came.hot.setdefault(answer.status, []).append(scheduler.now_ms - began_ms)

        def submit_calm(_number: int) -> None:
            answer = posted(world, {"type": "sim.plain", "payload": {}}, tenant=_CALM)
            assert answer is not None
            accepted_ms[answer.body["id"]] = scheduler.now_ms

        def warm_up() -> None:
            posted(world, {"type": "sim.plain", "payload": {}}, tenant=_CALM)

        for number in range(_WARMED):
            scheduler.spawn(Process(f"warming {number}"), warm_up)
        scheduler.spawn(Process("first"), lambda: first(world))
        for submit, rate in ((submit_hot, hot_per_second), (submit_calm, CALM_PER_SECOND)):
            for number in range(rate * seconds):
                caller = Process(f"{submit.__name__} {number}")
                scheduler.spawn(caller, partial(submit, number), delay_ms=_WARM_MS + 1000 * number // rate)
        scheduler.run(until_ms=scheduler.now_ms + ends_after_ms, most_steps=10**7)
        _read_messages(world, came, accepted_ms)
        look(world)
    return came


def _read_messages(world: World, came: Flood, accepted_ms: dict[str, int]) -> None:
    for at_ms, who, what in world.trace.lines:
        if who in world.lanes and " takes " in f" {what}":
            job_id = json.loads(what[what.index("{") :])["id"]
            came.messages[job_id] += 1
            accepted = accepted_ms.pop(job_id, None)
            came.dispatched += [] if accepted is None else [at_ms - accepted]
