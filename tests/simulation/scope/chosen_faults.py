"""Replacements for randomness and faults that leave every choice to a decider."""

from collections.abc import MutableSequence, Sequence
from random import Random
from typing import Any, Final, Protocol, TypeVar

from tests.simulation.world.faults import Fault, Faults

Element = TypeVar("Element")

#: Bits of a random number between 0 and 1, which our code uses for jitter.
_OF_A_DRAW: Final = 53


class Decider(Protocol):
    """Makes the choices of one schedule."""

    def pick(self, count: int) -> int:
        """Choose one of `count` equivalent options."""

    def unique_bits(self) -> int:
        """256 bits, different for each call."""

    def has_fault(self, fault: Fault) -> bool: ...


class ChosenRandom(Random):
    """Asks the decider for choices that matter, and returns constants for times.

    A time is zero if it may be zero, so that most things happen at once, and else the longest possible.
    """

    def __init__(self, decider: Decider) -> None:
        super().__init__(0)
        self._decider = decider

    def random(self) -> float:
        return 0.0

    def randint(self, a: int, b: int) -> int:
        return a if a == 0 else b

    def getrandbits(self, k: int) -> int:
        return 0 if k == _OF_A_DRAW else self._decider.unique_bits() >> (256 - k)

    def choice(self, seq: Sequence[Element]) -> Element:  # type: ignore[override]  # sequences only
        return seq[self._decider.pick(len(seq))]

    def shuffle(self, x: MutableSequence[Any]) -> None:
        for place in range(len(x) - 1):
            found = place + self._decider.pick(len(x) - place)
            x[place], x[found] = x[found], x[place]


class ChosenFaults(Faults):
    """Only the chosen faults occur."""

    def __init__(self, random: Random, decider: Decider) -> None:
        super().__init__(random)
        self._decider = decider

    def draws(self, fault: Fault, *, when_calm: bool = False) -> bool:
        return self._decider.has_fault(fault)
