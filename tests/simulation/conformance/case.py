"""The table, queue and clients of one case, the same for each backend."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from botocore.exceptions import ClientError

TABLE: Final = "things"
QUEUE: Final = "things-queue"
DLQ: Final = "things-dlq"
BUCKET: Final = "things-files"
INDEX: Final = "by-colour"
#: Deliveries of a message before it goes to the DLQ.
MOST_RECEIVES: Final = 3

Item = Mapping[str, Any]
Value = TypeVar("Value")


class Aws:
    """A backend. `dynamodb`, `sqs` and `s3` have the methods of boto3 clients."""

    dynamodb: Any
    sqs: Any
    s3: Any
    queue_url: str
    dlq_url: str

    def eventually(self, ask: Callable[[], Value]) -> Value:
        """The first true result of `ask`. Raises if none arrives in time."""
        raise NotImplementedError

    def records(self) -> list[Any]:
        """All records of the stream of the table, in the form that a function receives."""
        raise NotImplementedError

    def lane(self) -> None:
        """Map the queue to `scripted_function`: partial batch responses, two seconds of visibility, one receive."""
        raise NotImplementedError

    def put(self, name: str, **attributes: Any) -> None:
        self.dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": name}, **attributes})

    def get(self, name: str) -> Item | None:
        answer = self.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": name}}, ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item

    def update(self, name: str, expression: str, **more: Any) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self.dynamodb.update_item(
            TableName=TABLE, Key={"pk": {"S": name}}, UpdateExpression=expression, **more
        )
        return answer

    def send(self, body: str, **more: Any) -> None:
        self.sqs.send_message(QueueUrl=self.queue_url, MessageBody=body, **more)

    def receive(self, *, queue_url: str = "", **more: Any) -> list[Any]:
        answer = self.sqs.receive_message(
            QueueUrl=queue_url or self.queue_url,
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["All"],
            **more,
        )
        messages: list[Any] = answer.get("Messages", [])
        return messages

    def delete(self, message: Any) -> None:
        self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])

    def hide(self, receipt: str, seconds: int) -> None:
        self.sqs.change_message_visibility(QueueUrl=self.queue_url, ReceiptHandle=receipt, VisibilityTimeout=seconds)

    def counts(self, queue_url: str = "") -> list[str]:
        """Messages that are visible, delayed and in flight."""
        names = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "Delayed", "NotVisible")]
        answer = self.sqs.get_queue_attributes(QueueUrl=queue_url or self.queue_url, AttributeNames=names)
        return [answer["Attributes"][name] for name in names]


def refusal(act: Callable[[], Any]) -> Any:
    """The response of the `ClientError` that the call raises."""
    try:
        act()
    except ClientError as error:
        answer: Any = error.response
        return answer
    raise AssertionError("the call succeeded; it should have been refused")


def code(act: Callable[[], Any]) -> str:
    return str(refusal(act)["Error"]["Code"])


def failing(*names: Any) -> dict[str, Any]:
    """A partial batch response."""
    return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}
