"""The jobs and events that the demo sends over HTTP in addition to the clicks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Planned:
    """One job or event to send, with its idempotency key."""

    type: str
    payload: dict[str, Any]
    key: str
    #: Other fields of the request body.
    options: Mapping[str, Any] = field(default_factory=dict)


#: Number of jobs of each type, small enough to follow on the screen.
FLAKY, POISON, BROKEN, SLOW = 5, 3, 6, 6
#: Number of failures of a flaky job before it succeeds.
FLAKY_FAILURES = 2
#: Number of jobs in the group, and number of steps of the job that needs several invocations.
GROUP, STEPS = 5, 15
#: Number of jobs that are due tomorrow.
SCHEDULED = 1
#: Number of events, and the job types that consume them. One fails until it is fixed.
EVENTS = 4
CONSUMERS = ("demo.track", "demo.restock", "demo.bill")
BROKEN_CONSUMER = "demo.bill"
#: Number of jobs of the batch, and the job that it submits once all have succeeded.
ROWS = 12
CALLBACK = "demo.imported"
#: The nodes of the flow, each with its type and its parents. One is broken until it is fixed, so the flow dies, too.
NODES: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "pack": ("demo.row", []),
    "pay": ("demo.broken", []),
    "label": ("demo.row", ["pack"]),
    "ship": ("demo.row", ["label", "pay"]),
}
BROKEN_NODE = "pay"
#: What becomes of them before the fix.
NODES_AT_FIRST: Final = {"pack": "succeeded", "pay": "dead", "label": "succeeded", "ship": "blocked"}
#: Number of jobs that die.
DEAD = POISON + BROKEN + EVENTS + len((BROKEN_NODE, "the flow"))


def misbehaving() -> Iterator[Planned]:
    for number in range(FLAKY):
        yield Planned("demo.flaky", {"failures": FLAKY_FAILURES}, f"flaky-{number}")
    for number in range(POISON):
        yield Planned("demo.poison", {"body": f"\u2620 {number}"}, f"poison-{number}")
    for number in range(BROKEN):
        yield Planned("demo.broken", {"order": number}, f"broken-{number}")


def slow() -> Iterator[Planned]:
    for number in range(SLOW):
        yield Planned("demo.slow", {"seconds": 1.5}, f"slow-{number}")


def well_behaved() -> Iterator[Planned]:
    """Jobs of a group, one of which fails once; a long job; and a job that is due tomorrow."""
    for number in range(GROUP):
        payload = {"ledger": "demo", "number": number, "failures": int(number == 1)}
        yield Planned("demo.ordered", payload, f"ordered-{number}", {"group": "demo"})
    yield Planned("demo.steps", {"steps": STEPS, "seconds": 0.2}, "steps")
    yield Planned("demo.flaky", {"failures": 0}, "tomorrow", {"delay_seconds": 86_400})


def events() -> Iterator[Planned]:
    for number in range(EVENTS):
        yield Planned("demo.shipped", {"parcel": f"parcel {number}", "items": number}, f"shipped-{number}")


def nodes() -> Iterator[dict[str, Any]]:
    """Return the nodes in the form of `POST /flows`."""
    for number, (name, (job_type, after)) in enumerate(NODES.items()):
        payload = {"order": number} if job_type == "demo.broken" else {"number": number}
        yield {"name": name, "type": job_type, "payload": payload, "after": after}


def rows() -> Iterator[Planned]:
    for number in range(ROWS):
        yield Planned("demo.row", {"number": number}, f"row-{number}")
