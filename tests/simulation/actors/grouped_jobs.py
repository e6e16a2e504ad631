"""Jobs of types whose jobs are claimed and settled together. One request submits them, so that they share a batch."""

from datetime import timedelta
from random import Random
from typing import Final

from tests.simulation.actors.batch_callers import BatchCaller
from tests.simulation.actors.callers import TENANTS, PlannedSubmission
from tests.simulation.world.world import World
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission

#: Share of seeds with such jobs, and their number.
_GROUPED: Final = 0.3
_JOBS: Final = (2, 8, 20)
_WITHIN_MS: Final = 5_000
#: Share of the jobs that succeed at once.
_PLAIN: Final = 0.7


def grouped_jobs(seed: int) -> list[Submission]:
    """Their own chance leaves the other seeds as they are."""
    random = Random(f"grouped {seed}")
    if random.random() >= _GROUPED:
        return []
    return [_job(random, number) for number in range(random.choice(_JOBS))]


def submit_grouped_jobs(world: World) -> None:
    if jobs := grouped_jobs(world.seed):
        at_ms = world.scheduler.now_ms + Random(f"grouped at {world.seed}").randint(0, _WITHIN_MS)
        BatchCaller(world, [PlannedSubmission(TENANTS[0], job, at_ms) for job in jobs], 1)


def _job(random: Random, number: int) -> Submission:
    plain = Submission(type="sim.grouped", payload={"count": number}, key=f"grouped-{number}")
    if random.random() < _PLAIN:
        return plain
    return replace(
        plain,
        type=random.choice(["sim.grouped", "sim.grouped-effect"]),
        payload={
            "fails": random.choice([0, 1, 9]),
            "seconds": random.choice([0, 0.05, 1, 9]),
            "count": random.randint(0, 9),
            "key": random.choice(["", "", "snoozes"]),
            "padding": "x" * random.choice([0, 2_000]),
        },
        group=random.choice([None, None, "grouped"]),
        delay=random.choice([None, None, timedelta(seconds=3)]),
    )
