"""Do pieces of work in processes that are forked from this one, each in one of its own.

A fork has all that this process has imported, and none of what other forks import, change or break.
"""

import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Generic, NoReturn, TypeVar

Item = TypeVar("Item")
#: Ends the process of one piece of work at once, with this result.
End = Callable[[str], NoReturn]


class ForkError(Exception):
    """The process of a piece of work failed."""


@dataclass(frozen=True, slots=True)
class Ended(Generic[Item]):
    """One piece of work, and what its process left."""

    item: Item
    #: What the work returned or gave to `End`; after a failure, its traceback.
    text: str
    #: The status that `os.wait` gives. 0 without a failure.
    status: int

    def result(self) -> str:
        """Raises `ForkError`."""
        if self.status:
            raise ForkError(f"status {self.status}: {self.text}")
        return self.text


def in_forks(items: Iterable[Item], work: Callable[[Item, End], str], *, processes: int) -> Iterator[Ended[Item]]:
    """They come as they end. The processes print nothing."""
    waiting = iter(items)
    running: dict[int, tuple[Item, IO[bytes]]] = {}
    file: IO[bytes]
    while True:
        while len(running) < processes and (item := next(waiting, None)) is not None:
            file = TemporaryFile()  # noqa: SIM115 - closed when the process has ended
            if (pid := os.fork()) == 0:
                _work(item, work, file)
            running[pid] = item, file
        if not running:
            return
        pid, status = os.wait()
        if pid not in running:
            # The caller had started it before.
            continue
        item, file = running.pop(pid)
        with file:
            file.seek(0)
            yield Ended(item, file.read().decode(), status)


def _work(item: Item, work: Callable[[Item, End], str], file: IO[bytes]) -> NoReturn:
    """In the fork."""

    def end(result: str, status: int = 0) -> NoReturn:
        file.write(result.encode())
        file.flush()
        os._exit(status)

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        result = work(item, end)
    except BaseException:  # noqa: BLE001 - the parent gets it
        end(traceback.format_exc(), 1)
    end(result)
