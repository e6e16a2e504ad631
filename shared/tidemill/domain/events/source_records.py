"""What a source outside of Tidemill reports: one record for each event that it may become. Pure.

`identity` names the record in its source, and is the same in every delivery of it.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field


class SourceKind(StrEnum):
    """The service of a source."""

    EVENTBRIDGE = "eventbridge"
    S3 = "s3"
    SNS = "sns"
    TABLE = "table"


class EventBridgeRecord(Struct, frozen=True, kw_only=True):
    """An event of a bus: https://docs.aws.amazon.com/eventbridge/latest/ref/overiew-event-structure.html."""

    id: str
    source: str
    detail_type: str
    at: datetime
    account: str
    region: str
    resources: Sequence[str]
    detail: Any

    @property
    def identity(self) -> str:
        """EventBridge may deliver an event more than once, with one id.

        https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-troubleshooting.html
        """
        # Two sources of events choose their ids by themselves.
        return json.dumps([self.account, self.region, self.source, self.id])


class S3Record(Struct, frozen=True, kw_only=True):
    """A change of an object: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html.

    S3 sends a notification at least once, and in no order. Records of one object key may be compared by `sequencer`.
    """

    #: For example `ObjectCreated:Put`.
    name: str
    bucket: str
    #: The name of the object: S3 sends it encoded as in a URL.
    key: str
    at: datetime
    #: None for a deletion.
    size: int | None
    etag: str | None
    #: None in a bucket without versions.
    version: str | None
    #: Hexadecimal, of any length; None for events that have none, such as of lifecycle rules.
    sequencer: str | None

    @property
    def identity(self) -> str:
        # Without a sequencer, the time tells two changes of one object apart.
        order = self.sequencer or self.at.isoformat()
        return json.dumps([self.bucket, self.key, self.version, order, self.name])

    def later_than(self, sequencer: str) -> bool:
        """Whether it follows the record of the same object key with this sequencer: the shorter is padded with zeros.

        https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
        """
        own = self.sequencer or ""
        length = max(len(own), len(sequencer))
        return own.ljust(length, "0") > sequencer.ljust(length, "0")


class SnsRecord(Struct, frozen=True, kw_only=True):
    """A message of a topic: https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html."""

    id: str
    topic: str
    at: datetime
    subject: str | None
    message: str
    #: The attributes of the types `String`, `String.Array` and `Number`, as text.
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """SNS delivers a message at least once, with one id.

        https://docs.aws.amazon.com/sns/latest/dg/fifo-message-delivery.html
        """
        return json.dumps([self.topic, self.id])

    def json(self) -> Any:
        """The message as decoded JSON. Raises `ValueError`."""
        return json.loads(self.message)


#: In the JSON of a change that was too large for a message: it was set aside without its images, for an operator.
IMAGES_LEFT_OUT: Final = "imagesLeftOut"


class ChangeKind(StrEnum):
    INSERT = "INSERT"
    MODIFY = "MODIFY"
    REMOVE = "REMOVE"


class TableRecord(Struct, frozen=True, kw_only=True):
    """A change of an item: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_Record.html.

    Keys and images are plain Python: numbers are `int` or `float`, sets are sorted lists, and binary is Base64 text.
    """

    id: str
    table: str
    change: ChangeKind
    at: datetime
    #: Decimal, of 21 to 40 digits: compare it with `later_than`, and not as text.
    sequence: str
    keys: Mapping[str, Any]
    #: None if the item did not exist, or the view type of the stream leaves it out.
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    #: Whether the time to live of the item has deleted it.
    expired: bool = False

    @property
    def identity(self) -> str:
        return json.dumps([self.table, self.id])

    def later_than(self, sequence: str) -> bool:
        """Whether it follows the change of the same item with this sequence.

        https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_StreamRecord.html
        """
        return int(self.sequence) > int(sequence)


SourceRecord = EventBridgeRecord | S3Record | SnsRecord | TableRecord
#: The record that the mapping of a source of each kind takes.
RECORD_OF: Final[Mapping[SourceKind, type[SourceRecord]]] = {
    SourceKind.EVENTBRIDGE: EventBridgeRecord,
    SourceKind.S3: S3Record,
    SourceKind.SNS: SnsRecord,
    SourceKind.TABLE: TableRecord,
}
