"""A tenant that submits bursts of urgent jobs, so that some start late.

Its own chance leaves the other seeds as they are.
"""

from random import Random
from typing import Final

from tests.simulation.actors.api_gateway import ACCEPTED, OK, as_json, ask
from tests.simulation.actors.callers import PlannedSubmission
from tests.simulation.world.world import World
from tidemill.domain.submission.submission import Submission
from tidemill.names import Env

URGENT: Final = "sim.urgent"
_TENANT: Final = "111122223333:AROAURG"
#: Share of the seeds with such a tenant, where something governs the strain.
_URGENT: Final = 0.5
_MOST_BURSTS: Final = 6
_MOST_JOBS: Final = 9
_WITHIN_MS: Final = (15_000, 60_000, 400_000)


class UrgentBursts:
    """Submit urgent jobs in one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"urgent bursts {world.seed}")

    def plan(self) -> None:
        world, random = self._world, self._random
        governed = Env.FOREGROUND_TARGET in world.functions["submit"].environment
        if not governed or random.random() >= _URGENT:
            return
        within_ms = random.choice(_WITHIN_MS)
        for number in range(random.randint(1, _MOST_BURSTS)):
            jobs = random.randint(1, _MOST_JOBS)
            world.scheduler.at(world.scheduler.now_ms + random.randint(0, within_ms), self._begin, number, jobs)

    def _begin(self, number: int, jobs: int) -> None:
        self._world.scheduler.spawn(self._world.process("urgent"), lambda: self._submit(number, jobs))

    def _submit(self, number: int, jobs: int) -> None:
        world = self._world
        keys = [f"urgent-{number}-{place}" for place in range(jobs)]
        planned = [
            PlannedSubmission(_TENANT, Submission(type=URGENT, payload={}, key=key), world.scheduler.now_ms)
            for key in keys
        ]
        world.submissions.extend(planned)
        bodies = [as_json(one.submission) | {"idempotency_key": key} for one, key in zip(planned, keys, strict=True)]
        answer = ask(world, "submit", "POST", "/jobs/batch", tenant=_TENANT, body={"jobs": bodies})
        parts = answer.body["jobs"] if answer and answer.status == OK else []
        for one, part in zip(planned, parts, strict=bool(parts)):
            if part["status"] in {OK, ACCEPTED}:
                one.ids.append(part["job"]["id"])
