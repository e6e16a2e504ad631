"""The event source mapping of a queue: it passes messages to a function and deletes the ones that succeeded.

https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.lambda_environments import Function, FunctionError, Throttled
from tests.simulation.world.sqs_queue import Message, Queue
from tests.simulation.world.task_scheduler import Process, Scheduler
from tests.simulation.world.trace import Trace

_POLL_MS = 20


class MalformedAnswer(Exception):  # noqa: N818 - the mapping treats it as a failed batch
    """A partial batch response with an invalid identifier."""


def failed_identifiers(answer: Any, known: Sequence[str] | None) -> set[str]:
    """The identifiers that a response reports as failed; none means success.

    "Lambda treats a batch as a complete success if your function returns: an empty batchItemFailures list, a null
    batchItemFailures list, an empty EventResponse, a null EventResponse. Lambda treats a batch as a complete failure if
    your function returns: an invalid JSON response, an empty string itemIdentifier, a null itemIdentifier, an
    itemIdentifier with a bad key name." Raises `MalformedAnswer`, also for one that is not in the batch.
    """
    if answer is None or answer == {}:
        return set()
    if not isinstance(answer, Mapping):
        raise MalformedAnswer(answer)
    failures = answer.get("batchItemFailures") or []
    names = [failure.get("itemIdentifier") if isinstance(failure, Mapping) else None for failure in failures]
    named = {name for name in names if name}
    if len(named) < len(set(names)) or (known is not None and not named <= set(known)):
        raise MalformedAnswer(answer)
    return named


class LaneMapping:
    """Polls when messages are visible, and keeps to its maximum concurrency."""

    def __init__(
        self,
        queue: Queue,
        function: Function,
        *,
        batch_size: int,
        max_concurrency: int,
        scheduler: Scheduler,
        faults: Faults,
        trace: Trace,
    ) -> None:
        self._queue = queue
        self._function = function
        self._batch_size = batch_size
        self._free = max_concurrency
        self._scheduler = scheduler
        self._faults = faults
        self._trace = trace
        #: The pollers of Lambda. No fault kills them.
        self._process = Process(f"poller {queue.name}")
        #: Time from when a message is visible to a poll. Messages that wait meanwhile share a batch.
        self.poll_ms = _POLL_MS
        #: Called with the queue, the receipt handles of a batch and its process, when that has ended itself.
        self.exit_watchers: list[Callable[[Queue, list[str], Process], None]] = []
        queue.watchers.append(self._poll_at)

    def _poll_at(self, visible_ms: int) -> None:
        self._scheduler.at(max(visible_ms, self._scheduler.now_ms) + self.poll_ms, self._poll)

    def _poll(self) -> None:
        if not self._free:
            return
        most = self._scheduler.random.randint(1, self._batch_size)
        messages = self._queue.receive(most)
        if messages:
            self._free -= 1
            self._scheduler.spawn(self._process, lambda: self._deliver(messages))

    def _deliver(self, messages: list[Message]) -> None:
        receipts = {message.id: message.receipt for message in messages}
        event = {"Records": [_record(message) for message in messages]}
        try:
            answer = self._function.invoke(event)
            if isinstance(answer, FunctionError):
                if answer.killed:
                    self._spoil(receipts)
                if answer.exited:
                    for watch in self.exit_watchers:
                        watch(self._queue, list(receipts.values()), answer.exited)
                if self._faults.occurs(Fault.RETURNED_LATE):
                    self._queue.return_late(list(receipts.values()))
            else:
                stay = failed_identifiers(answer, list(receipts))
                for name, receipt in receipts.items():
                    if name not in stay:
                        self._queue.delete(receipt)
        except (Throttled, MalformedAnswer) as error:
            if isinstance(error, Throttled):
                self._spoil(receipts)
            self._trace.log(self._scheduler.now_ms, self._process.name, f"*batch failed: {type(error).__name__}")
        finally:
            self._free += 1
            # Messages may have become visible while all workers were busy.
            self._poll_at(self._scheduler.now_ms)

    def _spoil(self, receipts: Mapping[str, str]) -> None:
        for receipt in receipts.values():
            self._queue.spoil(receipt)


def _record(message: Message) -> dict[str, Any]:
    return {
        "messageId": message.id,
        "receiptHandle": message.receipt,
        "body": message.body,
        "attributes": {
            "ApproximateReceiveCount": str(message.receives),
            "SentTimestamp": str(message.sent_ms),
            "ApproximateFirstReceiveTimestamp": str(message.first_received_ms),
            **message.attributes,
        },
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }


__all__ = ["LaneMapping", "MalformedAnswer", "failed_identifiers"]
