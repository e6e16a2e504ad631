"""The body of the message by which a rule of EventBridge delivers an event to a queue."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tidemill.domain.events.source_records import EventBridgeRecord


def read(body: Mapping[str, Any]) -> Iterator[EventBridgeRecord]:
    yield EventBridgeRecord(
        id=body["id"],
        source=body["source"],
        detail_type=body["detail-type"],
        at=datetime.fromisoformat(body["time"]),
        account=body["account"],
        region=body["region"],
        resources=tuple(body.get("resources", ())),
        detail=body["detail"],
    )
