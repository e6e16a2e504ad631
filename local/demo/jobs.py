"""The jobs that the demo submits over HTTP, beside the clicks: the flaky, the poisonous, the broken and the slow."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Planned:
    """One job to submit, and the key to submit it under."""

    type: str
    payload: dict[str, Any]
    key: str


#: How many of each; small, so that a person can follow them.
FLAKY, POISON, BROKEN, SLOW = 5, 3, 6, 10
#: How often a flaky job fails before it succeeds.
FLAKY_FAILURES = 2


def planned() -> Iterator[Planned]:
    for number in range(FLAKY):
        yield Planned("demo.flaky", {"failures": FLAKY_FAILURES}, f"flaky-{number}")
    for number in range(POISON):
        yield Planned("demo.poison", {"body": f"\u2620 {number}"}, f"poison-{number}")
    for number in range(BROKEN):
        yield Planned("demo.broken", {"order": number}, f"broken-{number}")


def slow() -> Iterator[Planned]:
    for number in range(SLOW):
        yield Planned("demo.slow", {"seconds": 1.5}, f"slow-{number}")
