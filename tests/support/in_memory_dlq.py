"""A dead-letter queue in memory."""

from collections.abc import Sequence

from tests.support.builders import NOW
from tidemill.application.ports import ReceivedLetter
from tidemill.domain.job import Letter, Reference


class Letters:
    """A `LetterBox`. What is received stays hidden until it is put back."""

    def __init__(self, *bodies: Letter | Reference | None) -> None:
        self.waiting: list[ReceivedLetter] = []
        self.hidden: list[ReceivedLetter] = []
        for body in bodies:
            self.add(body)

    def add(self, body: Letter | Reference | None) -> None:
        number = str(len(self.waiting) + len(self.hidden))
        self.waiting.append(ReceivedLetter(message_id=number, receipt=number, body=body, sent_at=NOW))

    def receive(self) -> Sequence[ReceivedLetter]:
        received, self.waiting = self.waiting[:10], self.waiting[10:]
        self.hidden += received
        return received

    def delete(self, letters: Sequence[ReceivedLetter]) -> None:
        self.hidden = [letter for letter in self.hidden if letter not in letters]

    def put_back(self, letters: Sequence[ReceivedLetter]) -> None:
        self.delete(letters)
        self.waiting += letters
