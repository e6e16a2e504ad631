"""One schedule: a world, played by a script of choices to its end or to where another has been before."""

import traceback
from collections import Counter
from dataclasses import dataclass
from typing import Final

from tests.simulation.invariants import Checks, Violation
from tests.simulation.scope.chance import Chosen
from tests.simulation.scope.choices import Branch, Choices, ReplayError
from tests.simulation.scope.deployment import SmallDeployment
from tests.simulation.scope.director import Director, keys_of
from tests.simulation.scope.fingerprint import Fingerprint
from tests.simulation.scope.held_sdk import HeldSdk
from tests.simulation.scope.scenarios import MOST_STEPS, Scenario, Stage
from tests.simulation.scope.story import story
from tests.simulation.violations import require, state_of
from tests.simulation.world.faults import Fault
from tests.simulation.world.scheduler import StalledError
from tests.simulation.world.world import World

#: Long after the last message of a worker that was killed has come back.
_LONGEST_MS: Final = 86_400_000
#: For what has happened before a scenario begins.
_SETUP_MS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one schedule."""

    branches: list[Branch]
    #: Whether it came to where another had been.
    met: bool
    states: int
    faults: Counter[Fault]
    violation: Violation | None
    story: str


def play(scenario: Scenario, script: bytes, seen: set[bytes], *, most_faults: int) -> Played:
    """Adds the states that it comes to first to `seen`."""
    choices = Choices(script, most_faults=most_faults)
    director = Director(choices, directed=scenario.directed, apart=scenario.apart)
    with World(
        0,
        SmallDeployment(batch_size=scenario.batch_size),
        scheduler=director,
        weather=Chosen(director.random, director),
        sdk=HeldSdk,
    ) as world:
        before = len(seen)
        stage = Stage(world, director)
        violation, met = None, False
        try:
            met = _play(stage, scenario, seen)
        except Violation as found:
            violation = found
        except ReplayError:
            raise
        except StalledError as stalled:
            violation = Violation("the world comes to rest", str(stalled), "*")
        except Exception as broken:  # noqa: BLE001 - whatever it is, the schedule must be told
            violation = Violation("nothing breaks", "".join(traceback.format_exception(broken)[-3:]), "*")
        return Played(
            branches=choices.branches,
            met=met,
            states=len(seen) - before,
            faults=world.weather.counted,
            violation=violation,
            story=story(world.trace.lines, {job_id: name for name, job_id in stage.names.items()}) if violation else "",
        )


def _play(stage: Stage, scenario: Scenario, seen: set[bytes]) -> bool:
    """Whether it came to where another had been. Raises `Violation`."""
    world, director = stage.world, stage.director
    checks = Checks(world)
    fingerprint = Fingerprint(world, director)
    director.say = world.say
    director.in_the_way = lambda request: any(
        (key,) in table.held for key in keys_of(request) for table in (world.jobs, world.effects)
    )
    if scenario.before:
        scenario.before(stage)
        director.run(until_ms=director.now_ms + _SETUP_MS, most_steps=MOST_STEPS)
    director.begin()
    scenario.begin(stage)
    ends_ms = director.now_ms + _LONGEST_MS
    while True:
        director.settle_down(most_steps=MOST_STEPS)
        if options := director.options():
            if director.choices.open:
                stands = fingerprint.digest()
                if stands in seen:
                    return True
                seen.add(stands)
            director.let_go(options[director.choices.choose([option.cost for option in options])])
        elif director.actors or world.jobs.held or not checks.at_rest():
            if director.next_ms is None or director.next_ms > ends_ms:
                break
            director.now_ms = director.next_ms
        else:
            break
    checks.at_end()
    for key, item in world.jobs.items.items():
        state = state_of(item) if "state" in item else None
        if state:
            require(state in scenario.endings, "what can succeed succeeds", f"it is {state}", key[0])
    return False
