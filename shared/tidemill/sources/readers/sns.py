"""The body of the message by which SNS delivers a message to a queue, without raw message delivery."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tidemill.domain.events.source_records import SnsRecord


def read(body: Mapping[str, Any]) -> Iterator[SnsRecord]:
    attributes = body.get("MessageAttributes", {})
    yield SnsRecord(
        id=body["MessageId"],
        topic=body["TopicArn"],
        at=datetime.fromisoformat(body["Timestamp"]),
        subject=body.get("Subject"),
        message=body["Message"],
        attributes={name: each["Value"] for name, each in attributes.items() if each["Type"] != "Binary"},
    )
