"""The choices that make up one schedule, and where others branch off."""

from collections.abc import Sequence
from dataclasses import dataclass


class ReplayError(AssertionError):
    """The same choices led elsewhere: the simulation hangs on something that is not a choice."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A schedule that begins with these choices, the last of which has not been made before."""

    script: bytes
    #: Of its script.
    faults: int


class Choices:
    """Follows a script to its end, and from there on takes the first of what there is: never a fault."""

    def __init__(self, script: bytes, *, most_faults: int) -> None:
        self._script = script
        self._most_faults = most_faults
        self._made = bytearray()
        self.faults = 0
        self.branches: list[Branch] = []

    @property
    def open(self) -> bool:
        """Whether what is chosen from now on is up to nobody."""
        return len(self._made) >= len(self._script)

    @property
    def may_fail(self) -> bool:
        """Whether one more fault may strike."""
        return self.faults < self._most_faults

    def choose(self, costs: Sequence[int]) -> int:
        """One of as many as there are costs, in faults; the first costs nothing. Raises `ReplayError`."""
        if len(costs) == 1:
            return 0
        chosen = 0
        if self.open:
            made = bytes(self._made)
            self.branches += [
                Branch(made + bytes([other]), self.faults + cost)
                for other, cost in enumerate(costs)
                if other and self.faults + cost <= self._most_faults
            ]
        else:
            chosen = self._script[len(self._made)]
            if chosen >= len(costs):
                raise ReplayError(f"choice {len(self._made)} was among more than {len(costs)}")
        self._made.append(chosen)
        self.faults += costs[chosen]
        return chosen
