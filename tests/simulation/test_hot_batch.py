"""One hot page of a batch: the submissions that conflict on it are refused soon, and no other job waits for them.

The keys are chosen so that all jobs are on one of the 32 pages: 200 a second there are what 6,400 a second are to the
whole batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import count, islice
from typing import Final

from tests.simulation.actors.api_gateway import ACCEPTED, UNAVAILABLE, Answer, ask
from tests.simulation.flood import (
    CALM_PER_SECOND,
    HOT,
    HOT_PER_SECOND,
    REFUSED_WITHIN_MS,
    Flood,
    flooded,
    posted,
)
from tests.simulation.world.world import World
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.dynamodb.batches.batch_pages import PAGE_PREFIX, page_number

SECONDS: Final = 2
#: A page takes some dozens a second, as docs/guides/batches.md says.
ACCEPTED_PER_SECOND: Final = 24
ENDS_AFTER_MS: Final = 60_000


@dataclass
class Outcome:
    flood: Flood
    #: The jobs of the batch by their documents, and by its pages.
    jobs: set[str] = field(default_factory=set)
    listed: int = 0


def _keys() -> Iterator[str]:
    """Return keys of jobs that are all on one page."""
    return (key for key in map(str, count()) if page_number(keyed_job_id(HOT, key)) == 0)


@cache
def outcome(*, batched: bool) -> Outcome:
    """Return the outcome of the same submissions to a batch or to none."""
    opened: list[str] = []
    keys = list(islice(_keys(), HOT_PER_SECOND * SECONDS))
    came = Outcome(Flood())

    def open_batch(world: World) -> None:
        answer = ask(world, "submit", "POST", "/batches", tenant=HOT, body={})
        assert answer is not None
        opened.append(answer.body["id"])

    def submit(world: World, number: int) -> Answer | None:
        batch = {"batch": opened[0]} if batched else {}
        return posted(world, {"type": "sim.plain", "payload": {}} | batch, key=keys[number])

    def look(world: World) -> None:
        for (key,), item in world.jobs.items.items():
            if "batch" in item:
                came.jobs.add(key)
            if key.startswith(PAGE_PREFIX):
                came.listed += len(item["members"]["SS"])

    came.flood = flooded(submit, seconds=SECONDS, ends_after_ms=ENDS_AFTER_MS, first=open_batch, look=look)
    return came


def test_a_page_takes_some_dozens_of_jobs_a_second() -> None:
    assert len(outcome(batched=True).flood.hot[ACCEPTED]) >= ACCEPTED_PER_SECOND * SECONDS


def test_the_others_are_refused_soon_and_may_come_again() -> None:
    hot = outcome(batched=True).flood.hot

    assert set(hot) == {ACCEPTED, UNAVAILABLE}
    assert max(hot[UNAVAILABLE]) <= REFUSED_WITHIN_MS


def test_the_accepted_jobs_are_members_and_the_refused_ones_left_nothing() -> None:
    came = outcome(batched=True)

    assert came.listed == len(came.jobs) == len(came.flood.hot[ACCEPTED])


def test_no_other_job_waits_for_the_batch() -> None:
    came, without = (outcome(batched=batched).flood.dispatched for batched in (True, False))

    assert len(came) == len(without) == CALM_PER_SECOND * SECONDS
    assert max(came) <= max(without)
