"""The world of a play: without chance, calm, and with the steps that a play takes."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from tests.simulation.actors.api_gateway import ask
from tests.simulation.actors.callers import TENANTS
from tests.simulation.actors.operator_objects import configurator
from tests.simulation.deployment import Deployment
from tests.simulation.stories.steady_chance import SteadyChance
from tests.simulation.world.faults import Fault, no_faults
from tests.simulation.world.task_scheduler import Scheduler
from tests.simulation.world.world import World
from tidemill.domain.job import Job
from tidemill.dynamodb.document import decode
from tidemill.names import JOB_KEY

TENANT: Final = TENANTS[0]
#: A module of the engine, the name of a figure there, and its value in the play: so small that a few jobs are too many.
Figure = tuple[object, str, object]
#: More items than any play has.
_LARGE_PAGE: Final = 1_000
#: All calls of a slow table are slow: chance is steady.
_SLOW: Final = 0.6
_LONGEST_STEP_MS: Final = 3_600_000
_MOST_STEPS: Final = 1_000_000


class Scene:
    def __init__(self, world: World) -> None:
        self.world = world

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """The body of the answer."""
        function = "control" if path.endswith(("/cancel", "/close", "/redrive")) else "submit"
        return self._asked(function, "POST", path, key=key, body=body)

    def get(self, path: str, **query: str) -> Any:
        return self._asked("query", "GET", path, query=query)

    def does(self, act: Callable[[], Any], *, killed_after: float | None = None) -> Any:
        """In a process of its own, which may be killed after so many seconds. None if it is."""
        scheduler, process, came = self.world.scheduler, self.world.process("operator"), list[Any]()
        scheduler.spawn(process, lambda: came.append(act()))
        if killed_after is not None:
            scheduler.after(round(killed_after * 1000), scheduler.kill, process)
        self._until(lambda: bool(came) or not process.alive)
        return came[0] if came else None

    def calls(self, verb: str, event: Any) -> None:
        """Call the function as the scheduler does, until it has answered."""
        calls = self.world.async_invocations[verb]
        calls.invoke(event)
        self._until(lambda: not calls.under_way)

    def passes(self, seconds: float) -> None:
        scheduler = self.world.scheduler
        scheduler.run(until_ms=scheduler.now_ms + round(seconds * 1000), most_steps=_MOST_STEPS)

    def job(self, job_id: str) -> Job:
        return decode(dict(self.world.jobs.items[f"{TENANT}#{job_id}",]))

    def keep_busy(self, item_key: Any) -> None:
        """Transactions of others hold the item from now on, one after the other."""
        self.world.jobs.held.add((item_key[JOB_KEY]["S"],))

    def table_is_slow(self) -> None:
        self.world.faults.rates = {Fault.SLOW_CALL: _SLOW}

    def _asked(self, function: str, method: str, path: str, **more: Any) -> Any:
        answer = self.does(lambda: ask(self.world, function, method, path, tenant=TENANT, **more))
        assert answer is not None
        return answer.body

    def _until(self, over: Callable[[], bool]) -> None:
        scheduler = self.world.scheduler
        scheduler.run(until_ms=scheduler.now_ms + _LONGEST_STEP_MS, most_steps=_MOST_STEPS, over=over)
        assert over(), "the step has no end"


def pause(target: str) -> None:
    changes = configurator()
    changes.set(changes.read(), f"pauses.{target}", {}, by="eve", reason="")


@contextmanager
def scene(*figures: Figure, page_items: int = _LARGE_PAGE) -> Iterator[Scene]:
    """`page_items` are the most in a page of the table."""
    chance = SteadyChance()
    with ExitStack() as stack:
        for figure in figures:
            stack.enter_context(patch.object(*figure))
        world = World(1, Deployment(varied=False), scheduler=Scheduler(chance), faults=no_faults(chance))
        world.dynamodb.page_items = page_items
        yield Scene(stack.enter_context(world))


__all__ = ["TENANT", "Figure", "Scene", "scene"]
