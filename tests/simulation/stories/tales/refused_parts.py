"""Callbacks, nodes, events and settings that are refused, each with the path and the reason of its fault."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from tests.simulation.actors.operator_objects import configurator
from tests.simulation.stories.stage import TENANT, Stage
from tidemill import composition
from tidemill.application.batches import open_batch
from tidemill.application.events import publish
from tidemill.application.flows import start_flow
from tidemill.domain.batches import Batch
from tidemill.domain.errors import TidemillError
from tidemill.domain.events import LONGEST_EVENT_KEY, Event
from tidemill.domain.flows import Flow, Node
from tidemill.domain.submission import Submission, Unique
from tidemill.domain.time_constants import EPOCH

#: What neither a callback nor a node may have.
_NOT_OF_LATER_JOBS: dict[str, Any] = {
    "key": "k",
    "unique": Unique(period=timedelta(minutes=1)),
    "delay": timedelta(0),
    "run_at": EPOCH,
    "deadline": EPOCH,
    "supersedes": "one",
    "batch": "b",
    "debounce": timedelta(seconds=5),
}


def callbacks_that_are_refused(stage: Stage) -> None:
    """Over HTTP, and of a program that opens the batch without it."""
    plain = {"type": "sim.plain"}
    stage.post("/batches", {"on_success": {**plain, "delay_seconds": 5}, "on_failure": {**plain, "tags": ["Upper"]}})
    stage.post("/batches", {"on_success": {"type": "sim.unheard-of"}, "on_complete": {**plain, "group": ""}})

    def opened(callback: Submission) -> object:
        return open_batch(Batch(on_success=callback), composition.submit(), tenant=TENANT, trace="pia")

    _tries(stage, "opens batches", [partial(opened, each) for each in _later_jobs()])


def nodes_that_are_refused(stage: Stage) -> None:
    """Over HTTP, and of a program that starts the flow without it."""
    plain = {"name": "a", "type": "sim.plain"}
    stage.post("/flows", {"nodes": [{**plain, "group": "!node"}, {**plain, "name": "b", "group": ""}]})
    ring = [{"name": f"n{number}", "type": "sim.plain", "after": [f"n{(number + 1) % 10}"]} for number in range(10)]
    stage.post("/flows", {"nodes": ring})
    flow = stage.post("/flows", {"nodes": [plain]}, key="one")
    path = f"/flows/{flow['id']}/nodes"
    stage.post(path, {"nodes": [{"name": f"n{number}", "type": "sim.plain"} for number in range(101)]})
    stage.post(path, {"nodes": [plain, {"name": "b", "type": "sim.plain", "group": "!node", "after": ["b", "c"]}]})

    def started(nodes: list[Node]) -> object:
        return start_flow(Flow(nodes=nodes), composition.submit(), tenant=TENANT, trace="pia")

    asked = [[], [Node(name="Bad name", submission=Submission(type="sim.plain"))]]
    asked += [[Node(name="a", submission=each)] for each in _later_jobs()]
    _tries(stage, "starts flows", [partial(started, each) for each in asked])


def events_that_are_refused(stage: Stage) -> None:
    """Over HTTP, and of a program that publishes without it."""
    event = {"type": "sim.happened", "data": {"count": 1}}
    for more in ({"group": ""}, {"group": "é" * 32}, {"group": 1}, {"idempotency_key": 1}, {"version": "1"}):
        stage.post("/events", {**event, **more})

    def published(**more: Any) -> object:
        event = Event(**{"type": "sim.happened", "data": {"count": 1}} | more)
        return publish(event, composition.submit(), tenant=TENANT, trace="pia").job.group

    asked: list[dict[str, Any]] = [{"key": ""}, {"key": 1}, {"group": 1}, {"group": "g" * 64}, {"group": "g" * 63}]
    asked += [{"key": "k" * length} for length in (LONGEST_EVENT_KEY, LONGEST_EVENT_KEY + 1)]
    asked += [{"data": {1}}, {"data": {"count": "x"}}, {"version": 7}]
    _tries(stage, "publishes", [partial(published, **each) for each in asked])


def _later_jobs() -> list[Submission]:
    return [Submission(**{"type": "sim.plain", name: value}) for name, value in _NOT_OF_LATER_JOBS.items()]


def _tries(stage: Stage, what: str, acts: list[Callable[[], object]]) -> None:
    def tried(act: Callable[[], object]) -> object:
        try:
            return act()
        except TidemillError as error:
            return error

    stage.operate(what, lambda: [tried(act) for act in acts])


def settings_of_tenants_and_breakers_that_are_refused(stage: Stage) -> None:
    tenant = "111122223333:AROACCC"
    asked: list[tuple[str, Any]] = [
        ("caps.", 1),
        ("caps.default", "two"),
        ("caps.default", 101),
        (f"weights.{tenant}", 0),
        (f"weights.{tenant}", 101),
        (f"weights.{tenant}", "much"),
        ("weights.", 1),
        ("breakers.Payments!", {"force": "open"}),
        ("breakers.payments", "open"),
        ("breakers.payments", {"force": "open", "for": 5}),
        ("caps.default", 100),
        (f"caps.{tenant}", None),
        (f"weights.{tenant}", 100),
    ]

    def act() -> object:
        changes = configurator()

        def tried(name: str, value: Any) -> object:
            try:
                return changes.set(changes.read(), name, value, by="eve", reason="", until=None).version
            except TidemillError as error:
                return error

        seen = changes.read()
        told = [tried(name, value) for name, value in asked]
        try:
            return [*told, changes.set(seen, "flags.a", 1, by="eve", reason="", until=None)]
        except TidemillError as error:
            return [*told, error]

    stage.operate("tries settings, the last with a stale copy", act)
