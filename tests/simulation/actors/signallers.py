"""Callers that signal the jobs that wait: early, in time, late, twice, and with another value."""

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.simulation.actors.api_gateway import CONFLICT, NOT_FOUND, OK, UNAVAILABLE, Answer, ask
from tests.simulation.actors.callers import PlannedSubmission
from tests.simulation.checks.signals import Sent
from tests.simulation.checks.violation import Item, has_expired, maps_of, require_in_task, state_of, text_of
from tests.simulation.world.world import World
from tidemill.domain.states import TERMINAL

_KINDS: Final = frozenset({"sim.waits", "sim.asks"})
_NAMES: Final = {"sim.waits": ("answer-0", "answer-1", "answer-1", "unasked"), "sim.asks": ("address",)}
_VALUES: Final = {"sim.waits": ({"n": 1}, {"n": 1}, {"n": 2}, "yes"), "sim.asks": ("wrong", "right", "right")}
_MOST_CALLERS: Final = 5
#: After the submission. The first ones come before the job has begun to wait, the last ones after its timeouts.
_WITHIN_MS: Final = (300, 3_000, 60_000, 600_000, 3_000_000)
_MOST_TRIES: Final = 4
_PAUSE_MS: Final = (10, 20_000)
#: Longest delay of a response, and largest clock skew.
_ABOUT_NOW_MS: Final = 120_000
_ANSWERED: Final = "a signal is answered as the job takes it"


class Signallers:
    """The callers of one world. Their own chance leaves the other seeds as they are."""

    def __init__(self, world: World, accepted: Callable[[Sent], None]) -> None:
        """`accepted` gets each signal that was accepted."""
        self._world = world
        self._random = Random(f"signals {world.seed}")
        self._accepted = accepted

    def plan(self) -> None:
        """Draw the signals to the submissions that were planned."""
        for planned in self._world.submissions:
            if planned.submission.type not in _KINDS:
                continue
            for _ in range(self._random.randint(0, _MOST_CALLERS)):
                at_ms = planned.at_ms + self._random.randint(0, self._random.choice(_WITHIN_MS))
                name = self._random.choice(_NAMES[planned.submission.type])
                data = self._random.choice(_VALUES[planned.submission.type])
                self._world.scheduler.at(at_ms, self._begin, planned, name, data)

    def _begin(self, planned: PlannedSubmission, name: str, data: Any) -> None:
        process = self._world.process(planned.tenant)
        self._world.scheduler.spawn(process, lambda: self._signal(planned, name, data))

    def _signal(self, planned: PlannedSubmission, name: str, data: Any) -> None:
        """Send it again until it is answered, and sometimes once more."""
        if not planned.ids:
            return
        for _ in range(_MOST_TRIES):
            answer = self._answered(planned, name, data)
            if answer and self._random.random() < 0.8:
                return
            self._world.scheduler.sleep(self._random.randint(*_PAUSE_MS))

    def _answered(self, planned: PlannedSubmission, name: str, data: Any) -> Answer | None:
        world, key = self._world, f"{planned.tenant}#{planned.ids[-1]}"
        before, asked_ms = world.jobs.items.get((key,)), world.scheduler.now_ms
        path = f"/jobs/{planned.ids[-1]}/signals/{name}"
        answer = ask(world, "control", "POST", path, tenant=planned.tenant, body=data)
        if answer is None or answer.status == UNAVAILABLE:
            return None
        since = [change.after for change in world.trace.changes if change.key == key and change.at_ms >= asked_ms]
        versions = [item for item in (before, *since) if item]
        if answer.status == NOT_FOUND:
            soon_ms = world.scheduler.now_ms + _ABOUT_NOW_MS
            gone = before is None or None in since or any(has_expired(item, soon_ms) for item in versions)
            self._require(gone, f"404 for {name}", key)
        elif answer.status == CONFLICT:
            self._require(any(_refuses(item, name, data) for item in versions), f"409 for {name} {data}", key)
        else:
            has = any(_has(item, name, data) for item in versions)
            self._require(answer.status == OK and has, f"{answer.status} for {name} {data}", key)
            self._accepted(Sent(key, name, data))
        return answer

    def _require(self, holds: bool, what: str, key: str) -> None:
        require_in_task(self._world.scheduler, holds, _ANSWERED, what, key)


def _has(item: Item, name: str, data: Any) -> bool:
    return any(text_of(one, "name") == name and _data(one) == data for one in maps_of(item, "signals"))


def _refuses(item: Item, name: str, data: Any) -> bool:
    """It has ended, or has another value that no run has used."""
    other = any(text_of(one, "name") == name and "used" not in one for one in maps_of(item, "signals"))
    return not _has(item, name, data) and (other or state_of(item) in TERMINAL)


def _data(signal: Item) -> Any:
    return json.loads(text_of(signal, "data"))
