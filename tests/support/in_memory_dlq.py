"""A dead-letter queue in memory."""

from collections.abc import Sequence
from datetime import timedelta

from tests.support.builders import NOW
from tidemill.application.ports import ReceivedDeadLetter, Refusal
from tidemill.domain.dispatch.job_message import DeadLetter, Reference


class Letters:
    """A `DeadLetterQueue`. A received message stays hidden until `hide` ends that or it is deleted."""

    def __init__(self, *bodies: DeadLetter | Reference | None) -> None:
        self.waiting: list[ReceivedDeadLetter] = []
        self.hidden: list[ReceivedDeadLetter] = []
        for body in bodies:
            self.add(body)

    def add(self, body: DeadLetter | Reference | None) -> None:
        number = str(len(self.waiting) + len(self.hidden))
        self.waiting.append(ReceivedDeadLetter(message_id=number, receipt=number, body=body, sent_at=NOW))

    def receive(self, *, hidden_for: timedelta) -> Sequence[ReceivedDeadLetter]:
        assert hidden_for > timedelta(0)
        received, self.waiting = self.waiting[:10], self.waiting[10:]
        self.hidden += received
        return received

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Refusal]:
        self._forget(dead_letters)
        return []

    def hide(self, dead_letters: Sequence[ReceivedDeadLetter], *, duration: timedelta) -> None:
        if duration:
            return
        self._forget(dead_letters)
        self.waiting += dead_letters

    def _forget(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None:
        self.hidden = [dead_letter for dead_letter in self.hidden if dead_letter not in dead_letters]
