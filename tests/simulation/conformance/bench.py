"""A table, a queue and their clients, on the simulated AWS or on moto, for one case."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from shared.adapters import clients
from tests.simulation.deployment import Deployment
from tests.simulation.world.installed import client
from tests.simulation.world.lambdas import Function
from tests.simulation.world.queue import Queue
from tests.simulation.world.scheduler import Process
from tests.simulation.world.stream_mapping import StreamMapping
from tests.simulation.world.table import Index, Schema, Table
from tests.simulation.world.world import World

TABLE: Final = "things"
QUEUE: Final = "things-queue"
LETTERS: Final = "things-letters"
INDEX: Final = "by-colour"
Item = Mapping[str, Any]


class Aws:
    """What a case works with. `dynamodb` and `sqs` have the methods of boto3's clients."""

    dynamodb: Any
    sqs: Any
    queue_url: str
    letters_url: str

    def sleep(self, seconds: float) -> None:
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

    def receive(self, **more: Any) -> list[Any]:
        answer = self.sqs.receive_message(
            QueueUrl=self.queue_url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"], **more
        )
        messages: list[Any] = answer.get("Messages", [])
        return messages


class Simulated(Aws):
    """A calm world, whose clock the case turns."""

    def __init__(self) -> None:
        self.world = World(0, Deployment())
        self.world.weather.calm = True
        self.world.dynamodb.page_items = 1000
        self.scheduler = self.world.scheduler
        index = Index(name=INDEX, schema=Schema(names=("colour", "size"), types=("S", "N")))
        self.table = Table(TABLE, Schema(names=("pk",), types=("S",)), indexes=(index,), ttl="expires_at")
        self.world.dynamodb.add(self.table)
        self.letters = Queue(f"https://simulated.invalid/{LETTERS}", self.scheduler, self.world.weather)
        self.queue = Queue(
            f"https://simulated.invalid/{QUEUE}",
            self.scheduler,
            self.world.weather,
            letters=self.letters,
            max_receives=3,
        )
        self.world.sqs.add(self.queue)
        self.world.sqs.add(self.letters)
        self.queue_url, self.letters_url = self.queue.url, self.letters.url
        self.dynamodb = _InATask(self, client("dynamodb"))
        self.sqs = _InATask(self, client("sqs"))

    def sleep(self, seconds: float) -> None:
        self.scheduler.run(until_ms=self.scheduler.now_ms + round(seconds * 1000), most_steps=10_000_000)

    def run(self, act: Callable[[], Any]) -> Any:
        """In a task of its own; what it returned or raised."""
        ended: list[tuple[Any, BaseException | None]] = []

        def task() -> None:
            try:
                ended.append((act(), None))
            except Exception as error:  # noqa: BLE001 - raised again outside
                ended.append((None, error))

        self.scheduler.spawn(Process("case"), task)
        self.scheduler.run(until_ms=self.scheduler.now_ms + 86_400_000, most_steps=10_000_000, over=lambda: bool(ended))
        value, error = ended[0]
        if error:
            raise error
        return value

    def function(self, handler: Callable[[Any], Any], *, timeout_seconds: int = 10) -> Function:
        return Function(
            "case",
            lambda event, _context: handler(event),
            timeout_seconds=timeout_seconds,
            environment={},
            scheduler=self.scheduler,
            weather=self.world.weather,
            trace=self.world.trace,
        )

    def stream(self, handler: Callable[[Any], Any], **settings: Any) -> StreamMapping:
        """The stream of the table, mapped to a handler."""
        figures: dict[str, Any] = {"patterns": (), "batch_size": 100, "retries": 3, "oldest_seconds": 3600} | settings
        return StreamMapping(
            self.table,
            self.function(handler),
            failures=self.letters,
            scheduler=self.scheduler,
            weather=self.world.weather,
            trace=self.world.trace,
            **figures,
        )


class _InATask:
    def __init__(self, aws: Simulated, client: Any) -> None:
        self._aws = aws
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)
        return lambda **request: self._aws.run(lambda: method(**request))


class Moto(Aws):
    """moto must be on."""

    def __init__(self) -> None:
        def made(service: str) -> Any:
            return boto3.client(
                service,  # type: ignore[call-overload]  # whichever
                region_name="eu-west-1",
                aws_access_key_id="testing",
                aws_secret_access_key="testing",
                config=clients._CONFIG,
            )

        self.dynamodb, self.sqs = made("dynamodb"), made("sqs")
        self.dynamodb.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "colour", "AttributeType": "S"},
                {"AttributeName": "size", "AttributeType": "N"},
            ],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": INDEX,
                    "KeySchema": [
                        {"AttributeName": "colour", "KeyType": "HASH"},
                        {"AttributeName": "size", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        )
        self.letters_url = self.sqs.create_queue(QueueName=LETTERS)["QueueUrl"]
        self.queue_url = self.sqs.create_queue(QueueName=QUEUE)["QueueUrl"]


def refusal(act: Callable[[], Any]) -> Any:
    """The code and the answer of the error that a call ends in."""
    try:
        act()
    except ClientError as error:
        answer: Any = error.response
        return answer
    raise AssertionError("the call was not refused")


def code(act: Callable[[], Any]) -> str:
    return str(refusal(act)["Error"]["Code"])


def failing(*names: Any) -> dict[str, Any]:
    """A partial batch response."""
    return {"batchItemFailures": [{"itemIdentifier": name} for name in names]}
