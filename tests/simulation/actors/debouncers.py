"""Programs that submit bursts on a few debounce keys, until each submission is answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Final

from tests.simulation.actors.callers import TENANTS
from tests.simulation.checks.debounce import Answered, BurstChecks
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.domain.errors import TidemillError
from tidemill.domain.submission.submission import Submission

#: Share of seeds with bursts, and the most keys and submissions of a key.
_DEBOUNCED: Final = 0.3
_MOST_KEYS: Final = 2
_MOST_SUBMISSIONS: Final = 9
#: In seconds: the debounce and its maximum. With the longest, jobs are scheduled and queued.
_SPANS: Final = ((0, 0), (1, 20), (5, 8), (30, 300), (30, 40), (600, 3_000), (1_000, 2_500))
#: Share of keys whose submissions may have an age, in seconds. The shortest expires behind a limit or a fault.
_AGED: Final = 0.4
_AGES: Final = (None, None, 2, 60)
#: Between two submissions, as a share of the debounce, and in milliseconds.
_PAUSES: Final = (0.1, 0.9, 1.0, 1.3)
_MOST_TOGETHER_MS: Final = 40
_PAUSE_MS: Final = (10, 60_000)


@dataclass(frozen=True, slots=True)
class _Key:
    tenant: str
    name: str
    type: str
    debounce: timedelta
    longest: timedelta
    replaces: bool
    ages: Sequence[int | None]
    #: How much a payload is padded: within the document, in an item of its own, or in a file.
    padding: int


class Debouncers:
    """Debounce submissions in one world. Their own chance leaves the other seeds as they are."""

    def __init__(self, world: World, checks: BurstChecks) -> None:
        self._world = world
        self._random = Random(f"bursts {world.seed}")
        self._random_ages = Random(f"ages of bursts {world.seed}")
        self._checks = checks

    def plan(self) -> None:
        random = self._random
        if random.random() >= _DEBOUNCED:
            return
        number = 0
        for name in range(random.randint(1, _MOST_KEYS)):
            debounce, longest = random.choice(_SPANS)
            key = _Key(
                tenant=random.choice(TENANTS),
                name=f"key-{name}",
                type=random.choice(["sim.debounced", "sim.debounced", "sim.debounced-limited"]),
                debounce=timedelta(seconds=debounce),
                longest=timedelta(seconds=longest),
                replaces=random.random() < 0.8,
                ages=_AGES if self._random_ages.random() < _AGED else (None,),
                padding=random.choice([0, 0, 0, 900, 70_000]),
            )
            at_ms = self._world.scheduler.now_ms + random.randint(0, 2_000)
            for _ in range(random.randint(2, _MOST_SUBMISSIONS)):
                number += 1
                self._begin(at_ms, key, number)
                at_ms += self._pause_ms(key)

    def _pause_ms(self, key: _Key) -> int:
        random = self._random
        if random.random() < 0.4:
            return random.randint(0, _MOST_TOGETHER_MS)
        return round(key.debounce.total_seconds() * 1000 * random.choice(_PAUSES) + random.randint(0, 2_000))

    def _begin(self, at_ms: int, key: _Key, number: int) -> None:
        random = self._random
        age = self._random_ages.choice(key.ages)
        plan = {
            "count": number,
            "key": key.name,
            "fails": random.choice([0, 0, 0, 1]) if key.type == "sim.debounced" else 0,
            "seconds": random.choice([0, 0, 1, 8]),
            "padding": "x" * key.padding,
        }
        submission = Submission(
            type=key.type,
            payload=plan,
            # Some ask for an earlier time than the one before.
            debounce=key.debounce * random.choice([1, 1, 1, 1, 0.2]),
            debounce_key=key.name,
            debounce_max=key.longest,
            max_age=None if age is None else timedelta(seconds=age),
            replace="payload" if key.replaces else None,
        )

        def begin() -> None:
            process = self._world.process(f"burst-{number}")
            self._world.scheduler.spawn(process, lambda: self._submit(key.tenant, submission, number))

        self._world.scheduler.at(at_ms, begin)

    def _submit(self, tenant: str, submission: Submission, number: int) -> None:
        """Until it is answered."""
        world = self._world
        while True:
            asked_ms = world.scheduler.now_ms
            try:
                accepted = composition.parts().submit(submission, tenant=tenant, trace=f"burst-{number}")
            except TidemillError as error:
                world.log(tenant, f"submits burst-{number} again: {error}")
                world.scheduler.sleep(self._random.randint(*_PAUSE_MS))
            else:
                self._checks.accepted(Answered(number=number, job=accepted.job, asked_ms=asked_ms, asked=submission))
                return
