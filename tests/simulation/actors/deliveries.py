"""Jobs of types that share a limit, of two tenants and on two lanes."""

from random import Random
from typing import Final

from tidemill.domain.submission.submission import Submission
from tidemill.names import Lane

#: Share of seeds with such jobs, and the most of them.
_DELIVERING: Final = 0.3
_MOST_JOBS: Final = 8
_WITHIN_MS: Final = 5_000
_SHARING: Final = (("sim.ships", "sim.tracks"), ("sim.drives", "sim.drives", "sim.fetches"))


def deliveries(seed: int) -> list[tuple[int, Submission]]:
    """Milliseconds from now, and the submission. Their own chance leaves the other seeds as they are."""
    random = Random(f"deliveries {seed}")
    if random.random() >= _DELIVERING:
        return []
    types, seconds = random.choice(_SHARING), random.choice([[0, 1], [1, 3], [3, 20]])
    return [
        (random.randint(0, _WITHIN_MS), _job(random, number, types, seconds))
        for number in range(random.randint(3, _MOST_JOBS))
    ]


def _job(random: Random, number: int, types: tuple[str, ...], seconds: list[int]) -> Submission:
    type_ = random.choice(types)
    return Submission(
        type=type_,
        payload={
            "key": random.choice(["", "", "", "abroad"]),
            "seconds": random.choice(seconds),
            "fails": random.choice([0, 0, 0, 1]),
        },
        key=f"delivery-{number}",
        lane=random.choice([None, Lane.BULK]) if type_ in {"sim.drives", "sim.fetches"} else None,
        group=random.choice([None, None, None, "deliveries"]),
    )
