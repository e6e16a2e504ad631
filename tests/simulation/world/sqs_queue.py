"""One standard queue of the simulated SQS: at-least-once delivery in any order, with losses as faults."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.world.errors import ServiceError
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Scheduler

#: "The maximum is 12 hours": from when the message was received.
LONGEST_VISIBILITY_MS: Final = 12 * 3600 * 1000
#: Longest delay of a message that others overtake.
_LATE_MS: Final = 30_000
#: Time after which a lost message returns: longer than the limit of reconcile.
_RETURNED_MS: Final = (3 * 3600 * 1000, 4 * 3600 * 1000)


@dataclass(slots=True, eq=False)
class Message:
    """A message and its delivery state."""

    id: str
    body: str
    sent_ms: int
    visible_ms: int
    attributes: dict[str, str] = field(default_factory=dict)
    receives: int = 0
    #: Receives in the source queue: SQS reports the count "across all queues".
    earlier_receives: int = 0
    first_received_ms: int | None = None
    #: Handle of the last delivery. Earlier handles delete nothing.
    receipt: str = ""
    received_ms: int = 0
    #: Whether throttled batches have used almost all of its receives.
    receives_wasted: bool = False
    #: Handles of deliveries that a fault ended: the worker was killed or not started, or its delete or change of
    #: visibility did not arrive.
    spoilt: set[str] = field(default_factory=set)
    #: When each delivery was, by its handle.
    deliveries: dict[str, int] = field(default_factory=dict)


class Queue:
    """One standard queue."""

    def __init__(
        self,
        url: str,
        scheduler: Scheduler,
        faults: Faults,
        *,
        visibility_ms: int = 30_000,
        retention_ms: int = 4 * 86_400_000,
        dead_letters: "Queue | None" = None,
        max_receives: int = 0,
        most_in_flight: int = 120_000,
        log: Callable[[str, str], None] = lambda _who, _what: None,
    ) -> None:
        self.url = url
        self.scheduler = scheduler
        self.faults = faults
        self.visibility_ms = visibility_ms
        self.retention_ms = retention_ms
        self.dead_letters = dead_letters
        self.max_receives = max_receives
        self.most_in_flight = most_in_flight
        self._log = log
        self.messages: list[Message] = []
        #: Messages that exceeded their receives and went to the dead-letter queue.
        self.moved: list[Message] = []
        self.watchers: list[Callable[[int], None]] = []
        #: Called with each message that is sent, even if it is lost then.
        self.send_watchers: list[Callable[[Message], None]] = []
        #: Called with each message that is deleted.
        self.delete_watchers: list[Callable[[Message], None]] = []
        #: Called with each message whose visibility timeout is changed.
        self.hide_watchers: list[Callable[[Message], None]] = []
        #: Called with each message that was to be hidden for longer than SQS allows.
        self.refusal_watchers: list[Callable[[Message], None]] = []
        #: Called with the time at which a lost message will return.
        self.return_watchers: list[Callable[[int], None]] = []
        #: Until then another consumer takes every message.
        self.emptied_until_ms = 0
        #: Whether a delete had the handle of an earlier delivery, and so deleted nothing.
        self.deleted_too_late = False
        self._number = 0

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[-1]

    def send(self, body: str, *, delay_seconds: int = 0, attributes: Mapping[str, str] | None = None) -> Message:
        self._number += 1
        now_ms = self.scheduler.now_ms
        message = Message(f"{self.name}-{self._number}", body, now_ms, now_ms + delay_seconds * 1000)
        message.attributes.update(attributes or {})
        for watch in self.send_watchers:
            watch(message)
        if self.dead_letters and self.faults.occurs(Fault.RECEIVES_WASTED):
            message.receives, message.receives_wasted = self.max_receives - self.scheduler.random.randint(0, 2), True
        if self.faults.occurs(Fault.LATE_MESSAGE):
            message.visible_ms += self.scheduler.random.randint(1, _LATE_MS)
        if now_ms < self.emptied_until_ms or self.faults.occurs(Fault.MESSAGE_LOST):
            self._log(self.name, f"loses {message.id}: {body}")
        else:
            self._log(self.name, f"takes {message.id}, delayed by {delay_seconds} s: {body}")
            self.add(message)
        return message

    def add(self, message: Message) -> None:
        self.messages.append(message)
        self._notify(message.visible_ms)

    def receive(self, most: int, *, visibility_ms: int | None = None) -> list[Message]:
        now_ms = self.scheduler.now_ms
        self.messages = [message for message in self.messages if now_ms - message.sent_ms < self.retention_ms]
        ready = [message for message in self.messages if message.visible_ms <= now_ms]
        in_flight = sum(message.receives > 0 and message.visible_ms > now_ms for message in self.messages)
        self.scheduler.random.shuffle(ready)
        room = min(most, max(self.most_in_flight - in_flight, 0))
        return [message for message in ready[:room] if self._deliver(message, visibility_ms)]

    def delete(self, receipt: str) -> None:
        """Returns silently if the message did not exist, or if the delete missed a copy."""
        if self.faults.occurs(Fault.DELETE_LOST):
            self.spoil(receipt)
            return
        # Another receiver has it by now, or has deleted it.
        self.deleted_too_late |= all(message.receipt != receipt for message in self.messages)
        for message in [message for message in self.messages if message.receipt == receipt]:
            self._log(self.name, f"deletes {receipt}: {message.body}")
            for watch in self.delete_watchers:
                watch(message)
            self.messages.remove(message)

    def spoil(self, receipt: str) -> None:
        """Note that a fault ended the delivery."""
        for message in self.messages:
            if receipt.startswith(f"{message.id}/"):
                message.spoilt.add(receipt)

    def return_late(self, receipts: Sequence[str]) -> None:
        """Make the messages of these deliveries invisible for hours, until long after reconcile has acted."""
        for message in self.messages:
            if message.receipt in receipts:
                message.visible_ms = self.scheduler.now_ms + self.scheduler.random.randint(*_RETURNED_MS)
                self._notify(message.visible_ms)
                for watch in self.return_watchers:
                    watch(message.visible_ms)

    def hide(self, receipt: str, seconds: int) -> None:
        message = next((message for message in self.messages if message.receipt == receipt), None)
        if message is None:
            raise ServiceError("ReceiptHandleIsInvalid", f"The receipt handle {receipt!r} is not valid")
        if message.visible_ms <= self.scheduler.now_ms:
            raise ServiceError("MessageNotInflight", "The specified message isn't in flight")
        until_ms = self.scheduler.now_ms + seconds * 1000
        if until_ms - message.received_ms > LONGEST_VISIBILITY_MS:
            for watch in self.refusal_watchers:
                watch(message)
            raise ServiceError("InvalidParameterValue", "Total VisibilityTimeout for the message is beyond the limit")
        message.visible_ms = until_ms
        for watch in self.hide_watchers:
            watch(message)
        self._notify(until_ms)

    def counts(self) -> tuple[int, int, int]:
        """Visible, delayed, in flight."""
        now_ms = self.scheduler.now_ms
        hidden = [message for message in self.messages if message.visible_ms > now_ms]
        delayed = sum(message.receives == 0 for message in hidden)
        return len(self.messages) - len(hidden), delayed, len(hidden) - delayed

    def _deliver(self, message: Message, visibility_ms: int | None) -> bool:
        now_ms = self.scheduler.now_ms
        if message.receives and self.faults.occurs(Fault.MESSAGE_LOST):
            self._log(self.name, f"loses {message.receipt}: {message.body}")
            self.messages.remove(message)
            return False
        if self.dead_letters and message.receives >= self.max_receives:
            # It keeps its id, sent time and reported receive count; the count for the policy starts at zero.
            self.messages.remove(message)
            moved = Message(message.id, message.body, message.sent_ms, now_ms, dict(message.attributes))
            moved.earlier_receives = message.receives
            self.moved.append(message)
            self.faults.count(Fault.MOVED_TO_DLQ)
            self.dead_letters.add(moved)
            return False
        message.receives += 1
        message.first_received_ms = message.first_received_ms or now_ms
        message.receipt = f"{message.id}/{message.receives}/{self.scheduler.random.getrandbits(32):08x}"
        message.deliveries[message.receipt] = message.received_ms = now_ms
        message.visible_ms = now_ms + (self.visibility_ms if visibility_ms is None else visibility_ms)
        if self.faults.occurs(Fault.DUPLICATE):
            # Another SQS server does not know about this delivery.
            message.visible_ms = now_ms + self.scheduler.random.randint(0, 2000)
            message.spoilt.add(message.receipt)
        self._log(self.name, f"delivers {message.receipt}: {message.body}")
        self._notify(message.visible_ms)
        return True

    def _notify(self, visible_ms: int) -> None:
        for watch in self.watchers:
            watch(visible_ms)
