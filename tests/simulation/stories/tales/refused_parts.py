"""Callbacks, nodes, events and settings that are refused, each with the path and the reason of its fault."""

from datetime import timedelta
from functools import partial
from typing import Any

from tests.simulation.actors.operator_objects import configurator
from tests.simulation.stories.operator_tools import tried
from tests.simulation.stories.stage import BOB, TENANT, Stage
from tidemill import composition
from tidemill.application.batches import open_batch
from tidemill.application.events import publish
from tidemill.application.flows import start_flow
from tidemill.domain.batches import Batch
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
        return open_batch(Batch(on_success=callback), composition.parts().submit, tenant=TENANT, trace="pia")

    stage.operate("opens batches", lambda: [tried(opened, each) for each in _later_jobs()])


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
        return start_flow(Flow(nodes=nodes), composition.parts().submit, tenant=TENANT, trace="pia")

    asked = [[], [Node(name="Bad name", submission=Submission(type="sim.plain"))]]
    asked += [[Node(name="a", submission=each)] for each in _later_jobs()]
    stage.operate("starts flows", lambda: [tried(started, each) for each in asked])


def events_that_are_refused(stage: Stage) -> None:
    """Over HTTP, and of a program that publishes without it."""
    event = {"type": "sim.happened", "data": {"count": 1}}
    for more in ({"group": ""}, {"group": "é" * 32}, {"group": 1}, {"idempotency_key": 1}, {"version": "1"}):
        stage.post("/events", {**event, **more})

    def published(**more: Any) -> object:
        event = Event(**{"type": "sim.happened", "data": {"count": 1}} | more)
        return publish(event, composition.parts().submit, tenant=TENANT, trace="pia").job.group

    asked: list[dict[str, Any]] = [{"key": ""}, {"key": 1}, {"group": 1}, {"group": "g" * 64}, {"group": "g" * 63}]
    asked += [{"key": "k" * length} for length in (LONGEST_EVENT_KEY, LONGEST_EVENT_KEY + 1)]
    asked += [{"data": {1}}, {"data": {"count": "x"}}, {"version": 7}]
    stage.operate("publishes", lambda: [tried(published, **each) for each in asked])


def settings_of_each_kind_that_are_refused(stage: Stage) -> None:
    """Each with the rule that it breaks. Three are taken, and then a change of the copy of before them is refused."""
    wrong: tuple[tuple[str, Any], ...] = (
        ("types.sim.plain.backoff_seconds", -1),
        ("types.sim.plain.backoff_seconds", "soon"),
        ("types.sim.plain.backoff_cap_seconds", 10**9),
        ("types.sim.plain.timeout_seconds", 0),
        ("types.sim.plain.timeout_seconds", 901),
        ("types.sim.plain.timeout_seconds", 10**400),
        ("types.sim.plain.concurrency_per_key", 0),
        ("types.sim.plain.concurrency_per_key", 101),
        ("types.sim.plain.concurrency_per_key", 1.5),
        ("types.sim.plain.rate_per_key", {"count": 0, "period_seconds": 60}),
        ("types.sim.plain.rate_per_key", {"count": 1, "period_seconds": 0.5}),
        ("types.sim.plain.rate_per_key", {"count": True, "period_seconds": 60}),
        ("types.sim.plain.max_attempts", 26),
        ("types.Sim.max_attempts", 1),
        ("limits.carrier.max_attempts", 1),
        ("limits.Carrier.concurrency_per_key", 1),
        ("pauses.lane=slow", {}),
        ("pauses.group=orders", {}),
        ("pauses.type=sim.plain", []),
        ("pauses.type=sim.plain", {"reject_new": 1}),
        ("quotas.x y", {"count": 1, "period_seconds": 60}),
        ("quotas.default", {"count": -1, "period_seconds": 60}),
        ("quotas.default", {"count": 1, "period_seconds": 0.5}),
        ("quotas.default", {"count": 1, "period_seconds": "long"}),
        ("caps.x y", 1),
        ("caps.default", 101),
        ("caps.default", "all"),
        ("weights.x y", 1),
        (f"weights.{TENANT}", 0),
        (f"weights.{TENANT}", "heavy"),
        ("strain.level", "high"),
        ("governor", {"off": "yes"}),
        (f"weights.{TENANT}", 101),
        ("weights.", 1),
        ("caps.", 1),
        ("breakers.Payments!", {"force": "open"}),
        ("breakers.payments", "open"),
        ("breakers.payments", {"force": "open", "for": 5}),
    )

    right = (("caps.default", 100), (f"caps.{BOB}", None), (f"weights.{BOB}", 100))

    def act() -> object:
        changes = configurator()
        change = partial(changes.set, by="eve", reason="")
        stale = changes.read()
        refused = [[name, tried(change, stale, name, value)] for name, value in wrong]
        taken = [change(changes.read(), name, value).version for name, value in right]
        return [*refused, taken, tried(change, stale, "flags.a", 1)]

    stage.operate("tries settings", act)


def _later_jobs() -> list[Submission]:
    return [Submission(**{"type": "sim.plain", name: value}) for name, value in _NOT_OF_LATER_JOBS.items()]
