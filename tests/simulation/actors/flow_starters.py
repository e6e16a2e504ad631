"""Tenants that start flows over HTTP, read them, add nodes to them, cancel them, and redrive those that died."""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any, Final

from tests.simulation.actors.api_gateway import (
    ACCEPTED,
    CONFLICT,
    NOT_FOUND,
    OK,
    UNPROCESSABLE,
    Answer,
    ask,
)
from tests.simulation.actors.callers import TENANTS
from tests.simulation.checks.canaries import CANARIES
from tests.simulation.checks.flows import FlowChecks
from tests.simulation.checks.violation import require_in_task, state_of
from tests.simulation.jobs.flow_types import NODE
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.domain.states import State
from tidemill.names import FLOW_TYPE

#: Share of seeds with flows.
_STARTED: Final = 0.4
_SECOND_FLOW: Final = 0.3
_MOST_NODES: Final = 5
#: Some flows are large. Some of these are wide: all nodes but one follow that one, in one group, and are more than one
#: advance starts.
_LARGE: Final = 0.2
_WIDE: Final = 0.3
_NODES_OF_LARGE: Final = (6, 30)
_MOST_PARENTS: Final = 3
#: A flow begins within the first time, or so long before the faults end: the rest of it meets none.
_WITHIN_MS: Final = (50, 5_000, 60_000)
_BEFORE_CALM_MS: Final = 500
_PAUSE_MS: Final = (10, 20_000)
_MOST_TRIES: Final = 100
_MOST_REDRIVES: Final = 2
_SHARES: Final = {"redrive": 0.7, "node": 0.5, "cancel": 0.2, "read": 0.7, "add": 0.4, "twice": 0.3}
#: Waits until what died is redriven, and until the other acts, after its start.
_LATER_MS: Final = (0, 1_000, 30_000)
_SHOWN: Final = "a tenant sees its flow as it is"


class FlowStarters:
    """Start flows in one world. Their own chance leaves the other seeds as they are."""

    def __init__(self, world: World, checks: FlowChecks) -> None:
        self._world = world
        self._random = Random(f"flows {world.seed}")
        #: For sizes, and for redrives of nodes.
        self._apart = Random(f"sizes of flows {world.seed}")
        self._checks = checks
        #: How many flows, and how many nodes.
        self._redriven = {True: 0, False: 0}
        world.jobs.watchers.append(self._redrive_dead)

    def plan(self, until_ms: int) -> None:
        random, scheduler = self._random, self._world.scheduler
        if random.random() >= _STARTED:
            return
        for number in range(2 if random.random() < _SECOND_FLOW else 1):
            soon = scheduler.now_ms + random.randint(0, random.choice(_WITHIN_MS))
            calm = max(scheduler.now_ms, until_ms - _BEFORE_CALM_MS)
            self._at(random.choice([soon, calm]), partial(self._use, random.choice(TENANTS), f"flow-{number}"))

    def _at(self, at_ms: int, act: Any) -> None:
        def begin() -> None:
            self._world.scheduler.spawn(self._world.process("flow starter"), act)

        self._world.scheduler.at(max(at_ms, self._world.scheduler.now_ms), begin)

    def _later(self, act: Any, random: Random) -> None:
        self._at(self._world.scheduler.now_ms + random.randint(0, random.choice(_LATER_MS)), act)

    def _use(self, tenant: str, name: str) -> None:
        random = self._random
        nodes = self._nodes(CANARIES[tenant])
        flow_id = keyed_job_id(tenant, f"flow/{name}")
        self._checks.knows(f"{tenant}#{flow_id}", nodes)
        send = partial(self._ask, "submit", "POST", "/flows", tenant, key=name, body={"nodes": nodes})
        for _ in range(2 if random.random() < _SHARES["twice"] else 1):
            answer = self._answered(send, {OK, ACCEPTED})
            if answer is None:
                return
            self._require(answer.body["id"] == flow_id, "a repeated start is one flow", str(answer.body), tenant)
        self._checks.accepted.append(f"{tenant}#{flow_id}")
        for share, act in (
            ("cancel", partial(self._cancel, tenant, flow_id)),
            ("read", partial(self._read, tenant, flow_id)),
            ("read", partial(self._read, tenant, flow_id)),
            ("add", partial(self._add, tenant, flow_id, [node["name"] for node in nodes])),
        ):
            if random.random() < _SHARES[share]:
                self._later(act, random)

    def _nodes(self, canary: str) -> list[dict[str, Any]]:
        random, sizes = self._random, self._apart
        number = random.randint(1, _MOST_NODES)
        large, wide = sizes.random() < _LARGE, sizes.random() < _WIDE
        if large:
            number = max(_NODES_OF_LARGE) if wide else sizes.randint(*_NODES_OF_LARGE)
        names = [f"n{each}" for each in range(number)]
        nodes = [self._node(name, names[:each], canary) for each, name in enumerate(names)]
        if large and wide:
            # One that adds nodes would ask for a look, too.
            nodes = [node | {"payload": node["payload"] | {"fails": 0, "count": 0}} for node in nodes]
            nodes[1:] = [node | {"after": [self._edge(names[0])], "group": "berlin"} for node in nodes[1:]]
        random.shuffle(nodes)
        return nodes

    def _node(self, name: str, earlier: Sequence[str], canary: str) -> dict[str, Any]:
        random = self._random
        after: list[Any] = random.sample(earlier, random.randint(0, min(_MOST_PARENTS, len(earlier))))
        after = [self._edge(parent) for parent in after]
        plan = {
            "key": name,
            "fails": random.choice([0, 0, 0, 1, 3, 9]),
            "seconds": random.choice([0.0, 0.1, 5.0]),
            "count": 1 if random.random() < _SHARES["add"] / 2 else 0,
            "canary": canary,
        }
        node = {"name": name, "type": NODE, "payload": plan, "after": after}
        return node | ({"group": "berlin"} if random.random() < 0.1 else {})

    def _edge(self, parent: str) -> Any:
        rule = self._random.choice(["fail", "fail", "skip", "continue"])
        return parent if rule == "fail" and self._random.random() < 0.5 else {"node": parent, "on_failure": rule}

    def _add(self, tenant: str, flow_id: str, names: Sequence[str]) -> None:
        new = self._node("late", names, CANARIES[tenant])
        new = new | {"payload": new["payload"] | {"count": 0}}
        follower = {"name": "later", "type": NODE, "payload": {"key": "later"}, "after": [self._edge("late")]}
        nodes = [new, follower][: self._random.randint(1, 2)]
        self._checks.knows(f"{tenant}#{flow_id}", nodes)
        send = partial(self._ask, "submit", "POST", f"/flows/{flow_id}/nodes", tenant, body={"nodes": nodes})
        # Refused once the flow has ended.
        answer = self._answered(send, {OK, CONFLICT})
        if answer and answer.status == OK:
            self._checks.added += [(f"{tenant}#{flow_id}", node["name"]) for node in nodes]

    def _cancel(self, tenant: str, flow_id: str) -> None:
        send = partial(self._ask, "control", "POST", f"/flows/{flow_id}/cancel", tenant)
        self._answered(send, {OK, CONFLICT})

    def _read(self, tenant: str, flow_id: str) -> None:
        (other,) = (each for each in TENANTS if each != tenant)
        refused = self._ask("query", "GET", f"/flows/{flow_id}", other)
        if refused and refused.status < 500:
            self._require(refused.status == NOT_FOUND, "no tenant sees another tenant's job", str(refused), tenant)
        answer = self._answered(partial(self._ask, "query", "GET", f"/flows/{flow_id}", tenant), {OK})
        if answer:
            shown = {node["name"]: node["state"] for node in answer.body["nodes"]}
            found = self._checks.wrongly_shown(f"{tenant}#{flow_id}", shown)
            self._require(not found, _SHOWN, found, f"{tenant}#{flow_id}")

    def _redrive_dead(self, record: Record) -> None:
        """Redrive a flow, or one of its nodes by itself, some time after its death."""
        after = record.after or {}
        died = (
            state_of(after if "state" in after else None)
            is State.DEAD
            != state_of(record.before if record.before and "state" in record.before else None)
        )
        if not died:
            return
        is_flow, random = after["type"]["S"] == FLOW_TYPE, self._random
        if "flow" in after:
            random = self._apart
        elif not is_flow:
            return
        if self._redriven[is_flow] < _MOST_REDRIVES and random.random() < _SHARES["redrive" if is_flow else "node"]:
            self._redriven[is_flow] += 1
            tenant, _, job_id = record.keys["pk"]["S"].rpartition("#")
            self._later(partial(self._redrive, tenant, job_id), random)

    def _redrive(self, tenant: str, job_id: str) -> None:
        self._answered(partial(self._ask, "control", "POST", f"/jobs/{job_id}/retry", tenant), {OK, CONFLICT})

    def _ask(self, function: str, method: str, path: str, tenant: str, **fields: Any) -> Answer | None:
        return ask(self._world, function, method, path, tenant=tenant, **fields)

    def _answered(self, send: Any, expected: set[int]) -> Answer | None:
        """The first answer with an expected status. None if the flow is gone, or a version without flows answers."""
        for _ in range(_MOST_TRIES):
            answer: Answer | None = send()
            if answer and answer.status in expected:
                return answer
            if answer and answer.status in {NOT_FOUND, UNPROCESSABLE}:
                expired = answer.status == NOT_FOUND
                self._require(expired, "a sound flow is accepted", str(answer.body), "*")
                return None
            self._world.scheduler.sleep(self._random.randint(*_PAUSE_MS))
        return None

    def _require(self, holds: bool, check: str, what: str, about: str) -> None:
        require_in_task(self._world.scheduler, holds, check, what, about)
