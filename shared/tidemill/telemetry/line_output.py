"""Writes lines to the files behind standard streams, also after a handler has closed or replaced the streams."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TextIO

#: The device and the number of a file.
_Identity = tuple[int, int]


class LineOutput:
    """Several threads may share it. A line that cannot be written is dropped and counted, and raises nothing."""

    def __init__(self, *streams: TextIO) -> None:
        """A line goes to the first stream, or to the next one if that is gone."""
        #: The number of each file, and the file that it had at first. A copy outlives `os.close(1)`.
        self._files: Final[list[tuple[int, _Identity]]] = []
        self._copies: Final[list[int]] = []
        self._writers: Final[Sequence[Callable[[str], None]]] = [
            writer for stream in streams for writer in self._writers_of(stream)
        ]
        self.dropped = 0

    def write(self, text: str) -> None:
        for writer in self._writers:
            with suppress(OSError, ValueError):
                return writer(text)
        self.dropped += 1
        return None

    def intact(self) -> bool:
        """Whether no file was closed or replaced: not 1 and 2, and not the copies, which `os.closerange` closes."""
        return all(_is_still(number, identity) for number, identity in self._files)

    def close(self) -> None:
        """Close the copies, for tests."""
        for number in self._copies:
            os.close(number)

    def _writers_of(self, stream: TextIO) -> Sequence[Callable[[str], None]]:
        try:
            number = stream.fileno()
            copy = os.dup(number)
        except (AttributeError, OSError, ValueError):
            # It has no file, as in tests.
            return [partial(_write_stream, stream)]
        identity = _identity(number)
        self._copies.append(copy)
        self._files.extend([(copy, identity), (number, identity)])
        return [partial(_write_file, each, identity) for each in (copy, number)]


def _identity(number: int) -> _Identity:
    status = os.fstat(number)
    return status.st_dev, status.st_ino


def _is_still(number: int, identity: _Identity) -> bool:
    with suppress(OSError):
        return _identity(number) == identity
    return False


def _write_file(number: int, identity: _Identity, text: str) -> None:
    if not _is_still(number, identity):
        # Perhaps a connection of another job has the number now.
        raise OSError(f"{number} is closed, or another file")
    left = memoryview(text.encode(errors="backslashreplace"))
    while left:
        left = left[os.write(number, left) :]


def _write_stream(stream: TextIO, text: str) -> None:
    stream.write(text)
    stream.flush()
