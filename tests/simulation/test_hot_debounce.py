"""One hot debounce key: its submissions become one job, or are refused soon, and no other job waits for them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import pytest

from tests.simulation.actors.api_gateway import ACCEPTED, OK, UNAVAILABLE, Answer
from tests.simulation.flood import HOT, HOT_PER_SECOND, REFUSED_WITHIN_MS, Flood, flooded, posted
from tests.simulation.world.world import World
from tidemill.domain.states import State
from tidemill.names import PAYLOAD_PREFIX

SECONDS: Final = 3
SUBMITTED: Final = HOT_PER_SECOND * SECONDS
#: Each reads the location that it replaces, so that no payload is left behind, and must not meet another meanwhile.
APART_PER_SECOND: Final = 60
#: The longest call. The calls of a flood leave other chance to those of the other jobs.
ONE_CALL_MS: Final = 22
ENDS_AFTER_MS: Final = 120_000
#: By what becomes of the payload: it stays, it is replaced in the document, or it is replaced apart from it.
KINDS: Final = ("kept", "replaced", "replaced, large")


@dataclass
class Outcome:
    flood: Flood
    jobs: dict[str, Any] = field(default_factory=dict)
    #: Writes to the document of the job before it began.
    writes: int = 0
    payloads: int = 0


def _of_the_key(world: World) -> Iterator[tuple[str, Any]]:
    return ((key, item) for (key,), item in world.jobs.items.items() if key.startswith(HOT) and "state" in item)


@cache
def outcome(kind: str) -> Outcome:
    came = Outcome(Flood())

    def submit(world: World, number: int) -> Answer | None:
        payload = {"count": number, "padding": "x" * 500 if kind == "replaced, large" else ""}
        debounce: dict[str, Any] = {"debounce_seconds": 20, "debounce_key": "hot", "debounce_max_seconds": 60}
        replaces = {} if kind == "kept" else {"replace": "payload"}
        return posted(world, {"type": "sim.plain", "payload": payload} | debounce | replaces)

    def look(world: World) -> None:
        came.jobs = dict(_of_the_key(world))
        changes = [each for each in world.trace.changes if each.key in came.jobs and each.after]
        came.writes = sum("claimed_at" not in each.after for each in changes if each.after)
        came.payloads = sum(key.startswith(PAYLOAD_PREFIX) for (key,) in world.jobs.items)

    came.flood = flooded(
        submit,
        seconds=SECONDS,
        ends_after_ms=ENDS_AFTER_MS,
        look=look,
        hot_per_second=0 if kind == "none" else HOT_PER_SECOND,
    )
    return came


@pytest.mark.parametrize("kind", KINDS[:2])
def test_the_document_takes_each_submission_with_one_write_at_most(kind: str) -> None:
    came = outcome(kind)

    assert {status: len(times) for status, times in came.flood.hot.items()} == {ACCEPTED: 1, OK: SUBMITTED - 1}
    # Without a replacement, a submission writes only if it moves the job, by whole seconds.
    assert came.writes <= (SECONDS + 2 if kind == "kept" else SUBMITTED)


def test_replacements_apart_are_taken_one_by_one_and_the_others_refused_soon() -> None:
    hot = outcome("replaced, large").flood.hot

    assert set(hot) == {ACCEPTED, OK, UNAVAILABLE}
    assert len(hot[OK]) >= APART_PER_SECOND * SECONDS
    assert max(hot[UNAVAILABLE]) <= REFUSED_WITHIN_MS


@pytest.mark.parametrize("kind", KINDS)
def test_one_job_runs_once_and_nothing_else_is_left(kind: str) -> None:
    came = outcome(kind)
    ((key, job),) = came.jobs.items()

    assert job["state"]["S"] == State.SUCCEEDED
    assert came.flood.messages[key.rpartition("#")[2]] == 1
    assert came.payloads == (kind == "replaced, large")


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_job_waits_for_the_key(kind: str) -> None:
    came, alone = outcome(kind).flood.dispatched, outcome("none").flood.dispatched

    assert len(came) == len(alone) > 0
    assert max(came) <= max(alone) + ONE_CALL_MS
