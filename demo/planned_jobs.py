"""The jobs that the demo submits over HTTP, beside the clicks: the flaky, the poisonous, the broken and the slow."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Planned:
    """One job to submit, and the key to submit it under."""

    type: str
    payload: dict[str, Any]
    key: str
    #: Whatever else its body asks for.
    asked: Mapping[str, Any] = field(default_factory=dict)


#: How many of each; small, so that a person can follow them.
FLAKY, POISON, BROKEN, SLOW = 5, 3, 6, 6
#: How often a flaky job fails before it succeeds.
FLAKY_FAILURES = 2
#: Jobs of one group, and the steps of a job that takes longer than one run may.
GROUP, STEPS = 5, 15
#: One for tomorrow.
SCHEDULED = 1


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


def orderly() -> Iterator[Planned]:
    """A group, one of whose jobs fails once; a long job; and one that is not to run yet."""
    for number in range(GROUP):
        payload = {"ledger": "demo", "number": number, "failures": int(number == 1)}
        yield Planned("demo.ordered", payload, f"ordered-{number}", {"group": "demo"})
    yield Planned("demo.steps", {"steps": STEPS, "seconds": 0.2}, "steps")
    yield Planned("demo.flaky", {"failures": 0}, "tomorrow", {"delay_seconds": 86_400})
