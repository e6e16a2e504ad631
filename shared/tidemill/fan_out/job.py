"""The job of an event: its success creates the jobs of all its consumers, in one transaction.

It reads the consumers from its payload alone, so every version of the code creates the same jobs.
"""

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from tidemill import Done, Lane, Run, job_type
from tidemill.domain.events.events import Delivery
from tidemill.names import EVENT_TYPE, LARGEST_MAX_ATTEMPTS


class Consumer(BaseModel):
    """The facts of a consumer's job type at the publication."""

    type: str
    lane: Lane
    blocks: bool = False
    max_age_seconds: float | None = None
    retention_seconds: float | None = None


class PublishedEvent(BaseModel):
    type: str
    version: int
    data: dict[str, Any]
    consumers: list[Consumer]


@job_type(EVENT_TYPE, payload=PublishedEvent, max_attempts=LARGEST_MAX_ATTEMPTS)
def fan_out(event: PublishedEvent, run: Run) -> Done:
    """Its result names the consumers, in the order of their jobs."""
    group = run.group.removeprefix(f"{EVENT_TYPE}/") if run.group else None
    return Done(
        {"consumers": [consumer.type for consumer in event.consumers]},
        then=[_delivery(event, consumer, group) for consumer in event.consumers],
    )


def _delivery(event: PublishedEvent, consumer: Consumer, group: str | None) -> Delivery:
    return Delivery(
        type=consumer.type,
        payload=event.data,
        lane=consumer.lane,
        # The group belongs to the type: a slow consumer delays no other.
        group=None if group is None else f"{consumer.type}/{group}",
        max_age=_seconds(consumer.max_age_seconds),
        blocks=consumer.blocks,
        retention=_seconds(consumer.retention_seconds),
    )


def _seconds(value: float | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)
