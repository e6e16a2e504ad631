"""The choices that make up one schedule, and the branches to other schedules."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulation.scope.touched_items import Footprint, Sleeping, Step


class ReplayError(AssertionError):
    """The same choices led to another state, so the simulation depends on something that is not a choice."""


@dataclass(slots=True)
class ChoicePoint:
    """A point where one of several steps was chosen: the steps tried, in order, and the sleep set."""

    steps: Sequence[Step]
    sleeping: Sleeping
    #: By index, the footprints of the steps taken so far.
    footprints: dict[int, Footprint]

    def after(self, place: int, footprint: Footprint) -> Sleeping:
        """The sleep set after this step: the steps tried before it that are independent of it.

        Both orders of two such steps lead to the same state, so one order is enough. P. Godefroid,
        Partial-Order Methods for the Verification of Concurrent Systems, LNCS 1032, 1996, chapter 5.
        """
        self.footprints[place] = footprint.merged_with(self.footprints.get(place))
        tried = {self.steps[earlier]: found for earlier, found in self.footprints.items() if earlier < place}
        return {step: found for step, found in {**self.sleeping, **tried}.items() if found.independent_of(footprint)}


@dataclass(frozen=True, slots=True)
class Branch:
    """A schedule that begins with these choices. The last choice is new."""

    script: bytes = b""
    #: Faults in its script.
    faults: int = 0
    #: The last choice point, and the index of the step taken there.
    origin: tuple[ChoicePoint, int] | None = None


class Choices:
    """Follows a branch to its end, then always takes the first option, which is never a fault."""

    def __init__(self, branch: Branch, *, most_faults: int) -> None:
        self._script = branch.script
        self._most_faults = most_faults
        self._made = bytearray()
        self.origin = branch.origin
        self.faults = 0
        self.branches: list[Branch] = []

    @property
    def open(self) -> bool:
        """Whether the script is used up."""
        return len(self._made) >= len(self._script)

    @property
    def may_fail(self) -> bool:
        """Whether one more fault is allowed."""
        return self.faults < self._most_faults

    def scripted(self, costs: Sequence[int]) -> int:
        """The next choice of the script. `costs` has the faults of each option. Raises `ReplayError`."""
        chosen = self._script[len(self._made)]
        if chosen >= len(costs):
            raise ReplayError(f"choice {len(self._made)} is option {chosen}, but only {len(costs)} options exist")
        return self._make(chosen, costs[chosen])

    def choose(self, costs: Sequence[int]) -> int:
        """Choose within a step. The first option costs no fault."""
        if not self.open:
            return self.scripted(costs)
        for other, cost in enumerate(costs[1:], start=1):
            self._branch_off(other, cost, self.origin)
        return self._make(0, 0)

    def choose_step(self, costs: Sequence[int], tried: Sequence[int], choice_point: ChoicePoint) -> int:
        """Choose one of the steps to try, given by their indexes among all steps."""
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
