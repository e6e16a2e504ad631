"""The world of a story: calm, and the same each time. It writes down what happens at the boundary of the engine."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from tests.simulation.actors.api_gateway import Answer, ask
from tests.simulation.actors.callers import TENANTS
from tests.simulation.deployment import Deployment
from tests.simulation.stories.record import Record
from tests.simulation.stories.recorded_sdk import Mishap, Mishaps, RecordedSdk
from tests.simulation.stories.steady_chance import SteadyChance
from tests.simulation.world.faults import no_faults
from tests.simulation.world.task_scheduler import Scheduler
from tests.simulation.world.world import World
from tidemill.names import CONTINUE, WAKE_PART, WAKE_PARTS

__all__ = ["BOB", "TENANT", "Mishap", "Stage", "stage"]

TENANT, BOB = TENANTS
_LONGEST_STEP_MS: Final = 600_000
_MOST_STEPS: Final = 200_000
#: What `submit` answers. `query` answers all that is read, and `control` the rest.
_SUBMITTED: Final = frozenset({"/jobs", "/jobs/batch", "/events", "/flows", "/batches"})


class Stage:
    """The steps of a story. Each is over when its answer is there."""

    def __init__(self, world: World, record: Record, mishaps: Mishaps) -> None:
        self.world = world
        self._record = record
        self._mishaps = mishaps

    def next_call(self, function: str, operation: str, mishap: Mishap, *, tries: int = 1) -> None:
        """Let the next call of this function fail, such as `work-default`.

        With three tries of the SDK, the call fails.
        """
        self._mishaps.planned[function, operation] = [mishap] * tries

    def sends_writes_twice(self) -> None:
        """From now on, the first answer to each write of an item is lost, and the SDK sends the write again."""
        self._mishaps.writes_sent_twice = True

    def post(self, path: str, body: Any = None, *, key: str | None = None, tenant: str = TENANT) -> Any:
        """Returns the body of the answer. Paths below `/jobs` with an action go to `control`."""
        return self._asked("POST", path, tenant=tenant, key=key, body=body)

    def get(self, path: str, *, tenant: str = TENANT, **query: str) -> Any:
        return self._asked("GET", path, tenant=tenant, query=query)

    def operate(self, what: str, act: Callable[[], object]) -> Any:
        """Call this with the settings of the deployment, as the command line does."""
        self._record.note("operator", what)

        def tried() -> object:
            try:
                return act()
            except Exception as error:  # noqa: BLE001 - it is part of the story
                return error

        came = self._done("operator", tried)
        self._record.answer("operator", "has", came)
        return came

    def passes(self, seconds: float) -> None:
        """Let that time pass."""
        self._record.note("time", f"{seconds:g} seconds pass")
        scheduler = self.world.scheduler
        scheduler.run(until_ms=scheduler.now_ms + round(seconds * 1000), most_steps=_MOST_STEPS)

    def wakes(self) -> None:
        self._scheduled("wake", {WAKE_PART: "0", WAKE_PARTS: "1"})

    def reconciles(self, event: Mapping[str, str] | None = None) -> None:
        self._scheduled("reconcile", {CONTINUE: "true"} if event is None else event)

    def ticks(self, event: Mapping[str, str]) -> None:
        self._scheduled("tick", event)

    def _asked(self, method: str, path: str, *, tenant: str, **more: Any) -> Any:
        submitted = path in _SUBMITTED or path.endswith("/nodes")
        function = "query" if method == "GET" else "submit" if submitted else "control"
        shown = {name: value for name, value in more.items() if value}
        self._record.note("caller", f"{method} {path}", shown or None)
        answer = self._done("caller", lambda: ask(self.world, function, method, path, tenant=tenant, **more))
        assert isinstance(answer, Answer)
        self._record.answer("caller", f"has {answer.status}", _present(answer.body))
        return answer.body

    def _scheduled(self, verb: str, event: Mapping[str, str]) -> None:
        calls = self.world.async_invocations[verb]
        calls.invoke(event)
        self._until(lambda: not calls.under_way)

    def _done(self, who: str, act: Callable[[], Any]) -> Any:
        came: list[Any] = []
        self.world.scheduler.spawn(self.world.process(who), lambda: came.append(act()))
        self._until(lambda: bool(came))
        return came[0]

    def _until(self, over: Callable[[], bool]) -> None:
        scheduler = self.world.scheduler
        scheduler.run(until_ms=scheduler.now_ms + _LONGEST_STEP_MS, most_steps=_MOST_STEPS, over=over)
        assert over(), "the step has no answer"


@contextmanager
def stage() -> Iterator[tuple[Stage, Record]]:
    """A stage, and the record of what happens on it."""
    record, mishaps, chance = Record(), Mishaps(), SteadyChance()
    sdk = partial(RecordedSdk, record, mishaps)
    with World(1, Deployment(varied=False), scheduler=Scheduler(chance), faults=no_faults(chance), sdk=sdk) as world:
        world.cloudwatch.line_watchers.append(record.log_line)
        yield Stage(world, record, mishaps), record


def _present(body: Any) -> Any:
    """The members that have a value."""
    if isinstance(body, list):
        return [_present(each) for each in body]
    if not isinstance(body, dict):
        return body
    return {name: _present(each) for name, each in body.items() if each not in (None, [], {})}
