"""Jobs of types with batch handlers, submitted together, so that some share a call."""

from random import Random
from typing import Final

from tidemill.domain.submission.submission import Submission

#: Share of seeds with such jobs, and their number.
_BATCHED: Final = 0.35
_JOBS: Final = (4, 9, 14)
_WITHIN_MS: Final = (50, 50, 3_000)
#: How a job fails, or what it does besides.
_FAILING: Final = ("raises", "miscounts", "refused", "crashes")
_KEYS: Final = ("", "", "", "", *_FAILING, "snoozes", "never", "chains", "tallies")


def batched_jobs(seed: int) -> list[tuple[int, int, Submission]]:
    """Milliseconds from now, the number of the tenant, and the submission.

    Their own chance leaves the other seeds as they are.
    """
    random = Random(f"batched jobs {seed}")
    if random.random() >= _BATCHED:
        return []
    kind = random.choice(["sim.batched", "sim.batched", "sim.batched-in-pairs"])
    # In some seeds no job fails, so that all of a call settle together.
    keys = random.choice([("",), ("tallies", ""), _KEYS, _KEYS, _KEYS])
    within_ms = random.choice(_WITHIN_MS)
    tenants = random.choice([1, 2, 2])
    return [
        (random.randint(0, within_ms), number % tenants, _job(random, number, kind, keys))
        for number in range(random.choice(_JOBS))
    ]


def _job(random: Random, number: int, kind: str, keys: tuple[str, ...]) -> Submission:
    key = random.choice(keys)
    return Submission(
        type=kind,
        payload={
            "key": key,
            "fails": random.choice([1, 1, 2, 9] if key in _FAILING else [0, 0, 0, 1]),
            "seconds": random.choice([0, 0, 1, 9]),
            "padding": "x" * random.choice([0, 0, 0, 2_000]),
        },
        key=f"batched-{number}",
        group=random.choice([None, None, None, None, "batched"]),
    )
