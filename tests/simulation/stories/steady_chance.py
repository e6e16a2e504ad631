"""A source of chance that always chooses the same, so that a change of the engine changes only what follows from it."""

from collections.abc import MutableSequence, Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")


class SteadyChance(Random):
    """The first of several, the largest of numbers, a half of shares; bits differ each time, and count."""

    def __init__(self) -> None:
        super().__init__(0)
        self._drawn = 0

    def random(self) -> float:
        return 0.5

    def getrandbits(self, k: int, /) -> int:
        """A half, and the number of the draw."""
        self._drawn += 1
        return ((1 << (k - 1)) + self._drawn) % (1 << k)

    def randint(self, a: int, b: int) -> int:
        return b

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return 0 if stop is None else start

    def choice(self, seq: Sequence[T]) -> T:  # type: ignore[override]  # of sequences alone
        return seq[0]

    def shuffle(self, x: MutableSequence[Any]) -> None:
        """Leave the order."""
