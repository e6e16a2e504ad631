"""Run one schedule: a world that follows a branch of choices to its end or to a state already visited."""

import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, TypeVar
from unittest.mock import patch

from tests.simulation.checks.all_checks import Checks, Violation
from tests.simulation.checks.violation import require, state_of
from tests.simulation.scope.choices import Branch, ChoicePoint, Choices, ReplayError
from tests.simulation.scope.chosen_faults import ChosenFaults
from tests.simulation.scope.director import Director
from tests.simulation.scope.fingerprint import Fingerprint
from tests.simulation.scope.footprint_tracker import Tracker
from tests.simulation.scope.held_sdk import HeldSdk
from tests.simulation.scope.participants import Option
from tests.simulation.scope.readable_trace import story
from tests.simulation.scope.scenarios import MOST_STEPS, Scenario, ScenarioSetup
from tests.simulation.scope.small_deployment import SmallDeployment
from tests.simulation.scope.touched_items import Sleeping, Step
from tests.simulation.world.faults import Fault
from tests.simulation.world.task_scheduler import StalledError
from tests.simulation.world.world import World
from tidemill.dynamodb import job_store
from tidemill.dynamodb.debounce import debounce_items
from tidemill.dynamodb.groups import groups
from tidemill.dynamodb.transactions import Part, RefusedError
from tidemill.names import WAKE_INTERVAL_SECONDS, WAKE_PART, WAKE_PARTS

_Result = TypeVar("_Result")
#: Long after the last message of a killed worker has returned.
_LONGEST_MS: Final = 86_400_000
#: Calls of wake, a minute apart, once nothing else moves.
_MOST_WAKES: Final = 3
#: Time for the setup before a scenario begins.
_SETUP_MS: Final = 20_000

#: By state, the steps that were not taken there because they were in the sleep set.
VisitedStates = dict[bytes, frozenset[Step]]


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """The result of one schedule."""

    branches: list[Branch]
    #: Whether it stopped in a visited state, or where all steps were covered by another order.
    pruned: bool
    faults: Counter[Fault]
    violation: Violation | None
    story: str


def run_schedule(scenario: Scenario, branch: Branch, seen: VisitedStates, *, most_faults: int) -> ScheduleResult:
    """Adds the new states of this schedule to `seen`."""
    choices = Choices(branch, most_faults=most_faults)
    director = Director(choices, directed=scenario.directed, independent=scenario.independent, fates=scenario.fates)
    with ExitStack() as stack:
        for module in (debounce_items, groups, job_store):
            stack.enter_context(patch.object(module, "retried", _retried))
        world = stack.enter_context(
            World(
                0,
                SmallDeployment(batch_size=scenario.batch_size),
                scheduler=director,
                faults=ChosenFaults(director.random, director),
                sdk=HeldSdk,
            )
        )
        checks = Checks(world)
        setup = ScenarioSetup(world, director, checks.flows)
        violation, pruned = None, False
        try:
            pruned = not _ScheduleRun(setup, checks, scenario, seen).run()
        except Violation as found:
            violation = found
        except ReplayError:
            raise
        except StalledError as stalled:
            violation = Violation("the simulation comes to rest", str(stalled), "*")
        except Exception as broken:  # noqa: BLE001 - report every failure with its schedule
            violation = Violation("no unexpected exception", "".join(traceback.format_exception(broken)[-3:]), "*")
        return ScheduleResult(
            branches=choices.branches,
            pruned=pruned,
            faults=world.faults.counted,
            violation=violation,
            story=story(world.trace.lines, setup.names) if violation else "",
        )


def _retried(attempt: Callable[[], _Result]) -> _Result:
    """Try again as `groups.retried` does, without a pause that moves the clock.

    A write that others have outrun reads and writes again. One in conflict gives up at once: to wait for the end of the
    conflict equals a call that is held for longer.
    """
    while True:
        try:
            return attempt()
        except RefusedError as refused:
            if refused.of(Part.OWN) or refused.of(Part.BATCH):
                raise


class _ScheduleRun:
    """Runs one schedule step by step."""

    def __init__(self, setup: ScenarioSetup, checks: Checks, scenario: Scenario, seen: VisitedStates) -> None:
        self._setup = setup
        self._director = setup.director
        self._choices = setup.director.choices
        self._scenario = scenario
        self._seen = seen
        self._checks = checks
        self._fingerprint = Fingerprint(setup.world, setup.director)
        self._tracker = Tracker(setup.world, setup.director)
        self._director.asked = self._tracker.reads
        self._wakes_left = _MOST_WAKES

    def run(self) -> bool:
        """False if the schedule was pruned. Raises `Violation`."""
        director = self._director
        if self._scenario.before:
            self._scenario.before(self._setup)
            director.run(until_ms=director.now_ms + _SETUP_MS, most_steps=MOST_STEPS)
        director.direct(self._setup.world)
        self._scenario.begin(self._setup)
        ends_ms = director.now_ms + _LONGEST_MS
        director.run_until_held(most_steps=MOST_STEPS)
        sleeping: Sleeping = {}
        while True:
            if options := director.options():
                chosen = self._chosen(options, sleeping)
                if chosen is None:
                    return False
                sleeping = self._taken(chosen)
            elif self._at_rest():
                break
            elif director.next_ms is None or director.next_ms > ends_ms:
                if self._wakes_left == 0:
                    break
                self._wake()
            else:
                # No actor can act until then, so the sleep set is empty.
                director.now_ms, sleeping = director.next_ms, {}
                director.run_until_held(most_steps=MOST_STEPS)
        # A fault may have come at any time until now.
        self._checks.quiet_begins()
        self._checks.at_end()
        self._require_endings()
        return True

    def _wake(self) -> None:
        """A killed worker leaves a parked job to wake, and a write that others refuse is owed."""
        self._wakes_left -= 1
        self._director.now_ms += WAKE_INTERVAL_SECONDS * 1000
        self._setup.world.async_invocations["wake"].invoke({WAKE_PART: "0", WAKE_PARTS: "1"})
        self._director.run_until_held(most_steps=MOST_STEPS)

    def _chosen(self, options: list[Option], sleeping: Sleeping) -> Option | None:
        """None if the state was visited and all steps left are covered."""
        costs = [option.cost for option in options]
        if not self._choices.open:
            return options[self._choices.scripted(costs)]
        stands = self._fingerprint.digest()
        names = [option.name for option in options]
        if (slept := self._seen.get(stands)) is None:
            tried = [place for place, name in enumerate(names) if name not in sleeping]
            self._seen[stands] = frozenset(sleeping)
        else:
            # Steps that were in the sleep set at the earlier visit and are not now.
            tried = [place for place, name in enumerate(names) if name in slept and name not in sleeping]
            self._seen[stands] = still = slept & sleeping.keys()
            sleeping = {name: footprint for name, footprint in sleeping.items() if name in still}
        if not tried:
            return None
        choice_point = ChoicePoint([names[place] for place in tried], sleeping, {})
        return options[self._choices.choose_step(costs, tried, choice_point)]

    def _taken(self, chosen: Option) -> Sleeping:
        """Take the step and return the next sleep set."""
        self._tracker.begin()
        self._director.release(chosen)
        self._director.run_until_held(most_steps=MOST_STEPS)
        if not self._choices.open or self._choices.origin is None:
            return {}
        choice_point, place = self._choices.origin
        return choice_point.after(place, self._tracker.footprint(chosen))

    def _at_rest(self) -> bool:
        return not self._director.actors and self._checks.at_rest()

    def _require_endings(self) -> None:
        for (key, *_), item in self._setup.world.jobs.items.items():
            if "state" in item:
                state = state_of(item)
                require(state in self._scenario.endings, "jobs end as the scenario allows", f"it ended as {state}", key)
