"""Adds the counters of closed days to the totals of links every hour, so that statistics read few and small items.

The statistics are the same before, during and after a rollup. A rollup may be killed at any point, and two rollups may
run at once.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from pydantic import BaseModel

from shortener import clock, composition
from shortener.click_rollup import last_closed_day
from shortener.click_table import SHARDS
from tidemill import Continue, Done, Lane, Run, job_type

#: Upper bound of the time for one step, a few calls of DynamoDB. The run stops this long before its deadline.
LONGEST_STEP: Final = timedelta(seconds=1)
SAVED_EVERY: Final = timedelta(seconds=5)


class NoPayload(BaseModel):
    """The schedule sends an empty payload."""


class Position(BaseModel):
    """The checkpoint: how far the rollup is. The marks of a day are in as many partitions as a link has shards."""

    first_day: date
    last_day: date
    #: Counted from 0, the first partition of the first day.
    partition: int = 0
    #: The last link that is done in this partition; None before the first.
    code: str | None = None
    #: Number of shards that are done.
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


@job_type("clicks.rollup", payload=NoPayload, lane=Lane.BULK, schedule="rate(1 hour)")
def clicks_rollup(_payload: NoPayload, run: Run) -> Done | Continue:
    position = _begin() if run.resumed_from is None else Position.model_validate(run.resumed_from)
    saved_at = clock.now()
    for _ in _steps(position):
        now = clock.now()
        ends = now + LONGEST_STEP >= run.deadline
        if ends or now >= saved_at + SAVED_EVERY:
            run.checkpoint(position.model_dump(mode="json"), done=position.partition, total=position.partitions)
            saved_at = now
        if ends:
            return Continue(position.model_dump(mode="json"))
    return Done(
        {"through": str(position.last_day), "shards": position.shards},
        writes=[composition.rollup().progress_write(position.last_day)],
    )


def _begin() -> Position:
    now = clock.now()
    return Position(first_day=composition.rollup().first_open_day(now=now), last_day=last_closed_day(now))


def _steps(position: Position) -> Iterator[None]:
    """Yield after each link and after each partition, with `position` up to date."""
    rollup = composition.rollup()
    while position.partition < position.partitions:
        day, shard = position.day, position.shard
        for code in rollup.codes_with_shard(day, shard, after=position.code):
            rollup.add(code, through=position.last_day)
            rollup.expire_shard(code, day, shard, now=clock.now())
            position.code, position.shards = code, position.shards + 1
            yield
        position.partition, position.code = position.partition + 1, None
        yield
