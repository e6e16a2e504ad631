"""The callbacks of a batch: which of them commit with its end, and what of them its payload holds."""

from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from tidemill.domain.batches.batches import ON_COMPLETE, ON_FAILURE, ON_SUCCESS, Callback
from tidemill.names import Lane


class CallbackFacts(BaseModel):
    """A callback, with the facts of its job type at the opening."""

    type: str
    payload: dict[str, Any] = {}
    lane: Lane
    group: str | None = None
    tags: list[str] = []
    blocks: bool = False
    max_age_seconds: float | None = None
    retention_seconds: float | None = None


class OpenedBatch(BaseModel):
    """The payload of a batch."""

    on_success: CallbackFacts | None = None
    on_failure: CallbackFacts | None = None
    on_complete: CallbackFacts | None = None


def callbacks_at_end(opened: OpenedBatch, *, failed: bool, called: bool) -> list[Callback]:
    """Those that commit with an end of the batch. `called`: those of a first end have been submitted.

    A batch whose dead jobs were redriven may end again. Then only the callback of a success is left.
    """
    first = [] if called else _callback(ON_COMPLETE, opened.on_complete)
    if not failed:
        return [*_callback(ON_SUCCESS, opened.on_success), *first]
    return first if called else [*first, *_callback(ON_FAILURE, opened.on_failure)]


def _callback(name: str, facts: CallbackFacts | None) -> list[Callback]:
    if facts is None:
        return []
    max_age, retention = facts.max_age_seconds, facts.retention_seconds
    return [
        Callback(
            type=facts.type,
            payload=facts.payload,
            lane=facts.lane,
            group=facts.group,
            tags=facts.tags,
            max_age=None if max_age is None else timedelta(seconds=max_age),
            blocks=facts.blocks,
            retention=None if retention is None else timedelta(seconds=retention),
            name=name,
        )
    ]
