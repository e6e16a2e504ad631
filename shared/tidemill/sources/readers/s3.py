"""The body of the message by which S3 notifies a queue. A body may hold several records."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote_plus

from tidemill.domain.events.source_records import S3Record

#: S3 sends it when the notification is configured:
#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
_TEST: Final = "s3:TestEvent"


def read(body: Mapping[str, Any]) -> Iterator[S3Record]:
    if body.get("Event") == _TEST:
        return
    for record in body["Records"]:
        bucket, found = record["s3"]["bucket"], record["s3"]["object"]
        yield S3Record(
            name=record["eventName"].removeprefix("s3:"),
            bucket=bucket["name"],
            key=unquote_plus(found["key"]),
            at=datetime.fromisoformat(record["eventTime"]),
            size=found.get("size"),
            etag=found.get("eTag"),
            version=found.get("versionId"),
            sequencer=found.get("sequencer"),
        )
