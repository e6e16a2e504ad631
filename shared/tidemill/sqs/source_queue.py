"""Passes the records of a stream that cannot be published on to the queue of their source."""

import json
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.clients import translated
from tidemill.domain.events.source_records import IMAGES_LEFT_OUT

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
LARGEST_MESSAGE_BYTES: Final = 1024 * 1024


class SourceQueue:
    """The queue of one source, and its dead-letter queue."""

    def __init__(self, client: "SQSClient", *, queue: str, dead_letters: str) -> None:
        self._client = client
        self._queue = queue
        self._dead_letters = dead_letters

    def forward(self, record: str) -> None:
        """`record` is JSON in ASCII. One that no message can hold is set aside without its images."""
        url = self._queue
        if len(record) > LARGEST_MESSAGE_BYTES:
            url, record = self._dead_letters, json.dumps(_without_images(json.loads(record)))
        with translated():
            self._client.send_message(QueueUrl=url, MessageBody=record)


def _without_images(record: Any) -> Any:
    """It says so: the source refuses it also after an operator has moved it back."""
    change = {name: value for name, value in record["dynamodb"].items() if not name.endswith("Image")}
    return {**record, "dynamodb": change, IMAGES_LEFT_OUT: True}
