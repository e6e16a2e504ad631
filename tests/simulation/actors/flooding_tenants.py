"""A tenant that submits more jobs over HTTP than its quota allows, while operators declare strain and end it.

Its own chance leaves the other seeds as they are.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from tests.simulation.actors.api_gateway import ACCEPTED, OK, as_json, ask
from tests.simulation.actors.callers import PlannedSubmission, run_tool
from tests.simulation.actors.operator_objects import configurator
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.domain.admission.quotas import Quota
from tidemill.domain.admission.strain import LEVEL_SETTING
from tidemill.domain.operations.runtime_configuration import QUOTA_PREFIX
from tidemill.domain.submission.submission import Submission
from tidemill.names import QUOTA_KEY

FLOODER: Final = "111122223333:AROAFLO"
SHEDDABLE: Final = "sim.sheddable"
DEFERRABLE: Final = "sim.deferrable"
#: Share of the seeds with such a tenant. Fewer have faults, which hide most of what the checks look for.
_FLOODED: Final = 0.7
_FLOODED_AND_FAULTY: Final = 0.1
#: With the last one, an environment counts two jobs before it adds them.
_COUNTS: Final = (0, 1, 1, 2, 3, 5, 40)
_PERIODS_SECONDS: Final = (20, 3_600, 3_600)
_MOST_REQUESTS: Final = 12
_REQUESTS_WITHIN_MS: Final = (0, 0, 5_000, 40_000)
_REPEATED: Final = 0.2
#: Share of the requests at which the item of the shared count is throttled. Each seed chooses one.
_THROTTLED: Final = (0.0, 0.0, 0.3)
_THROTTLED_FOR_MS: Final = 30_000
#: The requests begin about the time at which the quota acts.
_BEGINS_AFTER_MS: Final = (5_000, 12_000, 12_000, 12_000)
_MOST_LEVELS: Final = 3
_LEVELS_WITHIN_MS: Final = 40_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Request:
    """One request of the tenant with its submissions. Times in milliseconds."""

    submissions: list[PlannedSubmission]
    began_ms: int
    ended_ms: int | None = None
    #: For each submission, the status and the code of the problem. Empty if no answer arrived.
    answers: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class Flood:
    """What the tenant did, for the checks."""

    #: None if the seed has no such tenant.
    quota: Quota | None = None
    requests: list[Request] = field(default_factory=list)


class FloodingTenants:
    """Flood one world."""

    def __init__(self, world: World, flood: Flood) -> None:
        self._world = world
        self._random = Random(f"floods {world.seed}")
        self._number = 0
        self._throttled = self._random.choice(_THROTTLED)
        self._flood = flood

    def plan(self) -> None:
        world, random = self._world, self._random
        faulty = any(world.faults.rates.values())
        if random.random() >= (_FLOODED_AND_FAULTY if faulty else _FLOODED):
            return
        count, seconds = random.choice(_COUNTS), random.choice(_PERIODS_SECONDS)
        self._flood.quota = Quota(count=count, period=timedelta(seconds=seconds))
        self._set(QUOTA_PREFIX + FLOODER, {"count": count, "period_seconds": seconds})
        now_ms = world.scheduler.now_ms + random.choice(_BEGINS_AFTER_MS)
        within_ms = random.choice(_REQUESTS_WITHIN_MS)
        for _ in range(random.randint(4, _MOST_REQUESTS)):
            jobs = random.choice([1, 1, 2, 4]) * (4 if count > max(_COUNTS[:-1]) else 1)
            world.scheduler.at(now_ms + random.randint(0, within_ms), self._begin, jobs)
        for _ in range(random.randint(0, _MOST_LEVELS)):
            at_ms = world.scheduler.now_ms + random.randint(0, _LEVELS_WITHIN_MS)
            world.scheduler.at(at_ms, self._set, LEVEL_SETTING, random.randint(0, 3))

    def _set(self, name: str, value: Any) -> None:
        def act(_process: Process) -> None:
            changes = configurator()
            changes.set(changes.read(), name, value, by="eve", reason="")

        run_tool(self._world, "eve", act)

    def _begin(self, jobs: int) -> None:
        self._world.scheduler.spawn(self._world.process("flood"), lambda: self._submit(jobs))

    def _submit(self, jobs: int) -> None:
        planned = [self._planned() for _ in range(jobs)]
        self._world.submissions.extend(planned)
        self._send(planned)
        if self._random.random() < _REPEATED:
            self._send(planned)

    def _planned(self) -> PlannedSubmission:
        self._number += 1
        kind = self._random.choice([SHEDDABLE, DEFERRABLE, "sim.plain"])
        submission = Submission(type=kind, payload={}, key=f"flood-{self._number}")
        return PlannedSubmission(FLOODER, submission, self._world.scheduler.now_ms)

    def _send(self, planned: list[PlannedSubmission]) -> None:
        world, quota = self._world, self._flood.quota
        if quota and self._random.random() < self._throttled:
            period = quota.period_of(_EPOCH + timedelta(milliseconds=world.scheduler.now_ms))
            begins, ends = (round(at.timestamp() * 1000) for at in (period.begins, period.ends))
            world.throttled_items.throttle(f"{QUOTA_KEY}{begins}-{ends}#{FLOODER}", for_ms=_THROTTLED_FOR_MS)
        request = Request(planned, world.scheduler.now_ms)
        self._flood.requests.append(request)
        bodies = [as_json(one.submission) for one in planned]
        keys = [one.submission.key or "" for one in planned]
        if len(planned) == 1:
            answer = ask(world, "submit", "POST", "/jobs", tenant=FLOODER, key=keys[0], body=bodies[0])
            parts: list[Any] = [(answer.status, answer.body, answer.body)] if answer else []
        else:
            jobs = [body | {"idempotency_key": key} for body, key in zip(bodies, keys, strict=True)]
            answer = ask(world, "submit", "POST", "/jobs/batch", tenant=FLOODER, body={"jobs": jobs})
            parts = (
                [(part["status"], part.get("job"), part) for part in answer.body["jobs"]]
                if answer and answer.status == OK
                else []
            )
        request.ended_ms = world.scheduler.now_ms
        for one, (status, job, body) in zip(planned, parts, strict=bool(parts)):
            request.answers.append((status, _code(body)))
            if status in {OK, ACCEPTED}:
                one.ids.append(job["id"])


def _code(body: Any) -> str:
    """The last part of the type of a problem."""
    problem = body.get("error") or body.get("problem") or body
    return str(problem.get("type", "")).rpartition("/")[2].rpartition(":")[2]
