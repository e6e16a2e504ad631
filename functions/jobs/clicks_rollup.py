"""Adds, every hour, what was counted on closed days to the totals of links, so that stats are few and small items.

The stats are the same before, during and after it. It may be killed anywhere and run twice at once.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from pydantic import BaseModel

from shortener import clock, composition
from shortener.click_rollup import last_closed_day
from shortener.click_table import SHARDS
from tidemill import Continue, Done, Lane, Run, job_type

#: What one step may take before the run has to end; a step is a few calls of DynamoDB.
LONGEST_STEP: Final = timedelta(seconds=1)
SAVED_EVERY: Final = timedelta(seconds=5)


class Nothing(BaseModel):
    """The clock has nothing to say."""


class Place(BaseModel):
    """Where the rollup is: its checkpoint. The marks of a day are in as many partitions as a link has shards."""

    first_day: date
    last_day: date
    #: Counted from the first of the first day.
    partition: int = 0
    #: The last link that is done in this partition.
    code: str | None = None
    #: Shards that are done in all.
    shards: int = 0

    @property
    def partitions(self) -> int:
        return max((self.last_day - self.first_day).days + 1, 0) * SHARDS

    @property
    def day(self) -> date:
        return self.first_day + timedelta(days=self.partition // SHARDS)

    @property
    def shard(self) -> int:
        return self.partition % SHARDS


@job_type("clicks.rollup", payload=Nothing, lane=Lane.BULK, schedule="rate(1 hour)")
def clicks_rollup(_payload: Nothing, run: Run) -> Done | Continue:
    place = _begin() if run.resumed_from is None else Place.model_validate(run.resumed_from)
    saved_at = clock.now()
    for _ in _steps(place):
        now = clock.now()
        ends = now + LONGEST_STEP >= run.deadline
        if ends or now >= saved_at + SAVED_EVERY:
            run.checkpoint(place.model_dump(mode="json"), done=place.partition, total=place.partitions)
            saved_at = now
        if ends:
            return Continue(place.model_dump(mode="json"))
    return Done(
        {"through": str(place.last_day), "shards": place.shards},
        writes=[composition.rollup().all_through(place.last_day)],
    )


def _begin() -> Place:
    now = clock.now()
    return Place(first_day=composition.rollup().first_open_day(now=now), last_day=last_closed_day(now))


def _steps(place: Place) -> Iterator[None]:
    """One link at a time; `place` is what has been done."""
    rollup = composition.rollup()
    while place.partition < place.partitions:
        day, shard = place.day, place.shard
        for code in rollup.counted(day, shard, after=place.code):
            rollup.add(code, through=place.last_day)
            rollup.retire(code, day, shard, now=clock.now())
            place.code, place.shards = code, place.shards + 1
            yield
        place.partition, place.code = place.partition + 1, None
        yield
