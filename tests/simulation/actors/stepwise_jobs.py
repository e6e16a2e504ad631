"""Jobs that record their steps."""

from random import Random
from typing import Final

from tidemill.domain.submission import Submission

#: Share of seeds with such jobs, and their number.
_STEPWISE: Final = 0.3
_JOBS: Final = 3
_WITHIN_MS: Final = 5_000


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
