"""What stands in for chance and for the weather where every choice is made on purpose."""

from collections.abc import MutableSequence, Sequence
from random import Random
from typing import Any, Final, Protocol, TypeVar

from tests.simulation.world.faults import Fault, Faults

Element = TypeVar("Element")

#: As many bits as a number between 0 and 1 is made of, by which our code spreads what it puts off.
_OF_A_DRAW: Final = 53


class Decider(Protocol):
    """Who makes the choices of one schedule."""

    def pick(self, count: int) -> int:
        """One of so many that are as good as each other."""

    def unique_bits(self) -> int:
        """256 bits that nobody else is given."""

    def has_fault(self, fault: Fault) -> bool: ...


class ChosenRandom(Random):
    """Leaves to another what matters, and is constant where only a time is drawn.

    Times are none at all if they may be none, which is when the most happens at once, and else as long as they may be.
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

    def choice(self, seq: Sequence[Element]) -> Element:  # type: ignore[override]  # only of what can be counted
        return seq[self._decider.pick(len(seq))]

    def shuffle(self, x: MutableSequence[Any]) -> None:
        for place in range(len(x) - 1):
            found = place + self._decider.pick(len(x) - place)
            x[place], x[found] = x[found], x[place]


class ChosenFaults(Faults):
    """Has strike what is chosen, and nothing else."""

    def __init__(self, random: Random, decider: Decider) -> None:
        super().__init__(random)
        self._decider = decider

    def draws(self, fault: Fault) -> bool:
        return self._decider.has_fault(fault)
