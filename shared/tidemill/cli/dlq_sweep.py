"""The tidying of a dead-letter queue, watched as it goes."""

from collections.abc import Callable, Sequence

from tidemill.application.ports import LetterBox, ReceivedLetter
from tidemill.application.redrive import Redriver, Swept


def sweep(redriver: Redriver, box: LetterBox, advance: Callable[[], object]) -> Swept:
    """Tidy one lane's letters. Call `advance` for each letter that comes."""
    return redriver.sweep(_Watched(box, advance))


class _Watched:
    """A `LetterBox` that says when a letter is read."""

    def __init__(self, box: LetterBox, advance: Callable[[], object]) -> None:
        self._box = box
        self._advance = advance

    def receive(self) -> Sequence[ReceivedLetter]:
        letters = self._box.receive()
        for _ in letters:
            self._advance()
        return letters

    def delete(self, letters: Sequence[ReceivedLetter]) -> None:
        self._box.delete(letters)

    def put_back(self, letters: Sequence[ReceivedLetter]) -> None:
        self._box.put_back(letters)
