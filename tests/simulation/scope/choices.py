"""The choices that make up one schedule, and where others branch off."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulation.scope.touched_items import Footprint, Sleeping, Step


class ReplayError(AssertionError):
    """The same choices led elsewhere: the simulation hangs on something that is not a choice."""


@dataclass(slots=True)
class ChoicePoint:
    """Where somebody had to be chosen: what was tried, in this order, and what need not be since it sleeps."""

    steps: Sequence[Step]
    sleeping: Sleeping
    #: Of the steps that have been taken, by their place.
    footprints: dict[int, Footprint]

    def after(self, place: int, footprint: Footprint) -> Sleeping:
        """What sleeps once this step has been taken: whatever was tried before it and has nothing to do with it.

        Both orders of two such steps lead to the same, so the one that is tried first stands for both. P. Godefroid,
        Partial-Order Methods for the Verification of Concurrent Systems, LNCS 1032, 1996, chapter 5.
        """
        self.footprints[place] = footprint.merged_with(self.footprints.get(place))
        tried = {self.steps[earlier]: found for earlier, found in self.footprints.items() if earlier < place}
        return {step: found for step, found in {**self.sleeping, **tried}.items() if found.independent_of(footprint)}


@dataclass(frozen=True, slots=True)
class Branch:
    """A schedule that begins with these choices, the last of which has not been made before."""

    script: bytes = b""
    #: Of its script.
    faults: int = 0
    #: The last crossroads, and which of its steps was taken.
    origin: tuple[ChoicePoint, int] | None = None


class Choices:
    """Follows a branch to its end, and from there on takes the first of what there is: never a fault."""

    def __init__(self, branch: Branch, *, most_faults: int) -> None:
        self._script = branch.script
        self._most_faults = most_faults
        self._made = bytearray()
        self.origin = branch.origin
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

    def scripted(self, costs: Sequence[int]) -> int:
        """The next choice of the script, among as many as there are costs in faults. Raises `ReplayError`."""
        chosen = self._script[len(self._made)]
        if chosen >= len(costs):
            raise ReplayError(f"choice {len(self._made)} was among more than {len(costs)}")
        return self._make(chosen, costs[chosen])

    def choose(self, costs: Sequence[int]) -> int:
        """In the middle of a step. The first costs nothing."""
        if not self.open:
            return self.scripted(costs)
        for other, cost in enumerate(costs[1:], start=1):
            self._branch_off(other, cost, self.origin)
        return self._make(0, 0)

    def choose_step(self, costs: Sequence[int], tried: Sequence[int], choice_point: ChoicePoint) -> int:
        """One of those that are to be tried, given by their places among all."""
        for place, other in enumerate(tried):
            if place:
                self._branch_off(other, costs[other], (choice_point, place))
        self.origin = (choice_point, 0)
        return self._make(tried[0], costs[tried[0]])

    def _branch_off(self, other: int, cost: int, origin: tuple[ChoicePoint, int] | None) -> None:
        if self.faults + cost <= self._most_faults:
            self.branches.append(Branch(bytes(self._made) + bytes([other]), self.faults + cost, origin))

    def _make(self, chosen: int, cost: int) -> int:
        self._made.append(chosen)
        self.faults += cost
        return chosen
