"""The simulated AWS of one case."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

from tests.simulation.conformance import scripted_function
from tests.simulation.conformance.case import DLQ, INDEX, MOST_RECEIVES, QUEUE, TABLE, Aws, Value
from tests.simulation.deployment import Deployment
from tests.simulation.world.dynamodb_table import Index, Schema, Table
from tests.simulation.world.faults import Fault
from tests.simulation.world.installed_patches import client, enter, leave
from tests.simulation.world.lambda_environments import Function
from tests.simulation.world.lane_mapping import LaneMapping
from tests.simulation.world.sqs_queue import Queue
from tests.simulation.world.stream_mapping import StreamMapping, event_record
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World

_URL: Final = "https://simulated.invalid/"
_STEP_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 60
_MOST_STEPS: Final = 10_000_000


class Simulated(Aws):
    """A world without faults, whose clock the case advances."""

    def __init__(self) -> None:
        self.world = World(0, Deployment())
        self.world.faults.stopped, self.world.faults.rates = True, {}
        self.world.dynamodb.page_items = 1000
        self.scheduler = self.world.scheduler
        index = Index(name=INDEX, schema=Schema(names=("colour", "size"), types=("S", "N")))
        self.table = Table(TABLE, Schema(names=("pk",), types=("S",)), indexes=(index,), ttl="expires_at")
        self.world.dynamodb.add(self.table)
        self.dead_letters = Queue(_URL + DLQ, self.scheduler, self.world.faults)
        self.queue = Queue(
            _URL + QUEUE, self.scheduler, self.world.faults, dead_letters=self.dead_letters, max_receives=MOST_RECEIVES
        )
        self.world.sqs.add(self.queue)
        self.world.sqs.add(self.dead_letters)
        self.queue_url, self.dlq_url = self.queue.url, self.dead_letters.url
        self.dynamodb = _InATask(self, client("dynamodb"))
        self.sqs = _InATask(self, client("sqs"))
        self.s3 = _InATask(self, client("s3"))
        self.cloudwatch = _InATask(self, client("cloudwatch"))

    @classmethod
    @contextmanager
    def entered(cls) -> Iterator[Self]:
        """Enter its world, so that the code under test uses it."""
        simulated = cls()
        enter(simulated.world)
        try:
            yield simulated
        finally:
            leave()

    def eventually(self, ask: Callable[[], Value]) -> Value:
        for _ in range(round(_PATIENCE_SECONDS / _STEP_SECONDS)):
            if answer := ask():
                return answer
            self.sleep(_STEP_SECONDS)
        raise AssertionError(f"no true result within {_PATIENCE_SECONDS} s")

    def records(self) -> list[Any]:
        return [event_record(record) for shard in self.table.shards for record in shard]

    def lane(self) -> None:
        self.queue.visibility_ms, self.queue.max_receives = 2_000, 1
        self.mapped(lambda event: scripted_function.handle(event, None))

    def sleep(self, seconds: float) -> None:
        self.scheduler.run(until_ms=self.scheduler.now_ms + round(seconds * 1000), most_steps=_MOST_STEPS)

    def inject(self, fault: Fault, rate: float = 1.0) -> None:
        """Inject this fault at this rate, and no other."""
        self.world.faults.stopped, self.world.faults.rates = False, {fault: rate}

    def stop_faults(self) -> None:
        self.world.faults.stopped = True

    def run(self, act: Callable[[], Any]) -> Any:
        """Run `act` in a task of its own, and return or raise its result."""
        ended: list[tuple[Any, BaseException | None]] = []

        def task() -> None:
            try:
                ended.append((act(), None))
            except Exception as error:  # noqa: BLE001 - raised again outside
                ended.append((None, error))

        self.scheduler.spawn(Process("case"), task)
        until_ms = self.scheduler.now_ms + 86_400_000
        self.scheduler.run(until_ms=until_ms, most_steps=_MOST_STEPS, over=lambda: bool(ended))
        value, error = ended[0]
        if error:
            raise error
        return value

    def answer(self, service: str, operation: str, **request: Any) -> Any:
        """Call the operation directly from a task, without latency and retries."""
        return self.world.sdk._operation(service, operation)(request)

    def environment(self) -> str:
        """Name of the process of the current task."""
        task = self.scheduler.current
        return task.process.name if task else ""

    def function(self, handler: Callable[[Any], Any], *, timeout_seconds: int = 10) -> Function:
        return Function(
            "case",
            lambda event, _context: handler(event),
            timeout_seconds=timeout_seconds,
            environment={},
            scheduler=self.scheduler,
            faults=self.world.faults,
            trace=self.world.trace,
        )

    def mapped(self, handler: Callable[[Any], Any], *, batch_size: int = 10, at_once: int = 2) -> None:
        """Map the queue to a handler."""
        LaneMapping(
            self.queue,
            self.function(handler),
            batch_size=batch_size,
            max_concurrency=at_once,
            scheduler=self.scheduler,
            faults=self.world.faults,
            trace=self.world.trace,
        )

    def stream(self, handler: Callable[[Any], Any], **settings: Any) -> StreamMapping:
        """Map the stream of the table to a handler."""
        figures: dict[str, Any] = {"patterns": (), "batch_size": 100, "retries": 3, "oldest_seconds": 3600} | settings
        return StreamMapping(
            self.table,
            self.function(handler),
            failures=self.dead_letters,
            scheduler=self.scheduler,
            faults=self.world.faults,
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
