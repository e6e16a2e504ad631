"""The records of a source outside of Tidemill as events: each is durable before the source learns that it was taken."""

import hashlib

from tidemill.application.event_types import EventSource
from tidemill.application.events.events import publish
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Submit
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import (
    EventModelError,
    InvalidPayloadError,
    PayloadTooLargeError,
    TidemillError,
)
from tidemill.domain.events.events import LONGEST_EVENT_KEY, RecordEvent
from tidemill.domain.events.source_records import SourceRecord


class RecordRefusedError(TidemillError):
    """No event can be made of a record by this code, so another try of the same code fails, too."""


def publish_record(
    record: SourceRecord, source: EventSource, submit: Submit, *, tenant: str, trace: str
) -> Accepted | None:
    """Publish the event of a record. None if the function leaves the record out.

    Raises `RecordRefusedError`, and what `Submit` raises for reasons that pass, such as `StoreUnavailableError`. Raises
    `KeyReusedError` for a record that was published before with other data: a deployment has changed the function
    since, it does not always return the same, or two records have one identity.
    """
    try:
        data = source.function(record)
        written = None if data is None else source.written(data)
    except Exception as error:
        raise RecordRefusedError(f"source {source.name!r} raised {error_text(error)}") from error
    if written is None:
        return None
    key = event_key(source.name, record)
    event = RecordEvent(type=source.event, version=source.version, data=written, key=key)
    try:
        return publish(event, submit, tenant=tenant, trace=trace)
    except (InvalidPayloadError, PayloadTooLargeError, EventModelError) as error:
        raise RecordRefusedError(f"event {source.event!r} of source {source.name!r}: {error}") from error


def event_key(name: str, record: SourceRecord) -> str:
    """The idempotency key of its event: the same for each delivery of the record."""
    key = f"{name}/{record.identity}"
    return key if len(key) <= LONGEST_EVENT_KEY else f"{name}/{hashlib.sha256(key.encode()).hexdigest()}"
