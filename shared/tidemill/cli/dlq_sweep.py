"""The tidying of a dead-letter queue, watched as it goes."""

from collections.abc import Callable, Sequence

from tidemill.application.ports import DeadLetterQueue, ReceivedDeadLetter
from tidemill.application.redrive import Redriver, Swept


def sweep(redriver: Redriver, box: DeadLetterQueue, advance: Callable[[], object]) -> Swept:
    """Tidy one lane's letters. Call `advance` for each letter that comes."""
    return redriver.sweep(_Watched(box, advance))


class _Watched:
    """A `DeadLetterQueue` that says when a letter is read."""

    def __init__(self, box: DeadLetterQueue, advance: Callable[[], object]) -> None:
        self._box = box
        self._advance = advance

    def receive(self) -> Sequence[ReceivedDeadLetter]:
        dead_letters = self._box.receive()
        for _ in dead_letters:
            self._advance()
        return dead_letters

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None:
        self._box.delete(dead_letters)

    def put_back(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None:
        self._box.put_back(dead_letters)
