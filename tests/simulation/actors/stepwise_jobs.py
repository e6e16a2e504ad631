"""Jobs that record their steps."""

from random import Random
from typing import Final

from tests.simulation.world.code_versions import Rollout
from tidemill.domain.submission.submission import Submission

#: Share of seeds with such jobs, and their number.
_STEPWISE: Final = 0.3
_JOBS: Final = 3
_WITHIN_MS: Final = 5_000
#: Jobs that a rollback meets, and how long before it the first ones come.
_ROLLED_BACK_JOBS: Final = 5
_BEFORE_ROLLBACK_MS: Final = 20_000


def stepwise_jobs(seed: int) -> list[tuple[int, Submission]]:
    """Milliseconds from now, and the submission. Their own chance leaves the other seeds as they are."""
    random = Random(f"steps {seed}")
    if random.random() >= _STEPWISE:
        return []
    return [(random.randint(0, _WITHIN_MS), _job(random, number)) for number in range(_JOBS)]


def _job(random: Random, number: int) -> Submission:
    return Submission(
        type=random.choice(["sim.stepwise", "sim.stepwise", "sim.lengthened", "sim.reordered"]),
        payload={
            "fails": random.choice([0, 1, 2, 9]),
            "seconds": random.choice([0, 1, 9]),
            "count": random.randint(2, 4),
            "key": random.choice(["", "", "continues", "snoozes", "waits"]),
            "padding": "x" * random.choice([0, 0, 2_000]),
        },
        key=f"steps-{number}",
        group=random.choice([None, None, "steps"]),
    )


def rolled_back_jobs(seed: int, rollout: Rollout) -> list[tuple[int, Submission]]:
    """Time of the world, and the submission: of jobs that record a step which the version before does not know."""
    if rollout.back_ms is None:
        return []
    random = Random(f"rolled back steps {seed}")
    first_ms, last_ms = rollout.back_ms - _BEFORE_ROLLBACK_MS, rollout.back_ms + rollout.takes_ms
    return [
        (
            random.randint(first_ms, last_ms),
            Submission(
                type="sim.lengthened",
                payload={"fails": random.choice([2, 2, 9]), "seconds": random.choice([0, 1, 9]), "count": 1},
                key=f"rolled-back-{number}",
            ),
        )
        for number in range(_ROLLED_BACK_JOBS)
    ]
