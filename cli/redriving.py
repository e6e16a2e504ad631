"""The redrive of many jobs at once, counted as it goes."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from cli.wording import count
from shared.application.ports import LetterBox, ReceivedLetter
from shared.application.redrive import Redriver, Swept
from shared.domain.job import Job

#: Jobs at a time. Each is one write to an item of its own, so this bounds the time and not the load.
_AT_ONCE: Final = 8


class Redriving:
    """Redrives `jobs`. What it has counted is right whenever it stops, also by Ctrl-C or an error."""

    def __init__(self, redriver: Redriver, jobs: Sequence[Job], *, by: str) -> None:
        self._redriver = redriver
        self._jobs = jobs
        self._by = by
        self._lock = threading.Lock()
        self.redriven = 0
        self.moved_first = 0

    @property
    def summary(self) -> str:
        text = f"Redrove {self.redriven} of {count(len(self._jobs), 'job')}."
        if self.moved_first:
            text += f" Somebody else moved {self.moved_first} first."
        return text

    def run(self, advance: Callable[[], object]) -> None:
        """Call `advance` for each job that is done with. Returns or raises once no write is under way any more."""
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            for _ in pool.map(self._redrive, self._jobs):
                advance()
        finally:
            pool.shutdown(cancel_futures=True)

    def _redrive(self, job: Job) -> None:
        redriven = self._redriver.redrive(job, by=self._by)
        with self._lock:
            if redriven:
                self.redriven += 1
            else:
                self.moved_first += 1


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
