"""Callers that submit jobs over HTTP or in Python, retry, and repeat accepted submissions."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from tests.simulation.actors.api_gateway import ACCEPTED, BROKEN, CONFLICT, OK, UNPROCESSABLE, as_json, ask
from tests.simulation.actors.batched_jobs import batched_jobs
from tests.simulation.actors.bookings import bookings
from tests.simulation.actors.deliveries import deliveries
from tests.simulation.actors.stepwise_jobs import rolled_back_jobs, stepwise_jobs
from tests.simulation.checks.canaries import CANARIES
from tests.simulation.checks.violation import has_expired, require_in_task
from tests.simulation.jobs.odd_values import ODD_VALUES
from tests.simulation.world.faults import Fault
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.domain.errors import TidemillError
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission
from tidemill.names import Lane

TENANTS: Final = tuple(CANARIES)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: After this time a caller repeats its submission: in two of five cases when the first job has expired.
_REPEATS_AFTER_MS: Final = (0, 1_000, 40 * 60_000, 26 * 3_600_000, 26 * 3_600_000)
_ANSWERED_WITHIN_MS: Final = 60_000
#: Share of submissions sent over HTTP among those that could use either way.
_OVER_HTTP: Final = 0.15
#: Share of seeds with odd values, and the number of their jobs.
_ODD: Final = 0.12
_ODD_JOBS: Final = 4
#: Share of the seeds without faults, and of the others, that have a crowd of jobs of one limit key. Its size and types.
_CROWDED: Final = 0.9
_CROWDED_AND_FAULTY: Final = 0.15
_CROWD: Final = 6
_LIMITED: Final = ("sim.limited", "sim.slots", "sim.paced", "sim.adaptive", "sim.adaptive")
#: Share of the seeds without faults, and of the others, that have jobs which call a downstream. The most of them.
_DEPENDENT: Final = 0.8
_DEPENDENT_AND_FAULTY: Final = 0.2
_MOST_DEPENDENTS: Final = 10
#: Share of seeds with jobs that wait for signals, and their number.
_WAITING: Final = 0.25
_WAITING_JOBS: Final = 3
#: Faults that are counted when they begin and fail calls later.
_LASTING: Final = (Fault.SERVICE_OUTAGE, Fault.GROUP_THROTTLED, Fault.TRANSACTION_UNDER_WAY, Fault.FROZEN_MID_CALL)
_GROUPS: Final = ("orders", "orders", "mail")
_PLANS: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "sim.effect": lambda random: {"fails": random.choice([0, 0, 0, 1, 2, 9]), "seconds": random.choice([0, 0, 1, 24])},
    "sim.urgent": lambda random: {"fails": random.choice([0, 1, 2, 9]), "seconds": random.choice([0, 5, 40])},
    "sim.plain": lambda random: {"fails": random.choice([0, 0, 1, 9]), "count": random.randint(0, 9)},
    "sim.permanent": lambda random: {"seconds": random.choice([0, 1])},
    "sim.refused": lambda random: {"fails": random.choice([0, 1, 9])},
    "sim.give-up": lambda random: {"count": random.randint(0, 1)},
    "sim.later": lambda random: {"fails": random.choice([1, 2]), "seconds": random.choice([1, 10, 30])},
    "sim.chain": lambda random: {"count": random.randint(1, 3), "fails": random.choice([0, 0, 1])},
    "sim.snooze": lambda random: {"count": random.choice([1, 20, 60]), "seconds": random.choice([5, 16, 30])},
    "sim.continue": lambda random: {
        "count": random.randint(1, 3),
        "seconds": random.choice([0, 1]),
        "fails": random.choice([0, 0, 9]),
    },
    "sim.steps": lambda random: random.choice(
        [{"count": 3, "seconds": 1}, {"count": 4, "seconds": 9}, {"count": 40, "seconds": 0.5}]
    ),
    "sim.overrun": lambda random: {
        "fails": random.choice([0, 1, 2]),
        "seconds": random.choice([3, 10, 50, 5000]),
        "key": random.choice("abcd"),
    },
    "sim.poison": lambda random: {"fails": random.choice([1, 2, 9]), "seconds": random.choice([0, 2])},
    "sim.blocking": lambda random: {"fails": random.choice([0, 0, 9]), "seconds": random.choice([0, 1])},
    "sim.limited": lambda random: {"key": random.choice("ab"), "seconds": random.choice([0, 3])},
    "sim.slots": lambda random: {"key": random.choice("aab"), "seconds": random.choice([1, 3, 20])},
    "sim.adaptive": lambda random: {"key": random.choice("aab"), "seconds": random.choice([0, 1, 3])},
    "sim.paced": lambda random: {"key": random.choice("aab"), "fails": random.choice([0, 0, 1])},
    "sim.metered": lambda random: {"seconds": random.choice([0, 2])},
    "sim.unique": lambda random: {"count": random.randint(0, 1)},
}
#: The tags are as many and as long as they may be.
TAGS: Final = tuple(f"{letter}:{'x' * 30}" for letter in "cabed")
#: Job types that differ between the two versions of the code.
_PLANS_OF_ONE_VERSION: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "sim.added": lambda random: {"fails": random.choice([0, 0, 10, 11]), "count": random.choice([0, 0, 1])},
    "sim.changed": lambda random: {"amount": random.choice([1, {"value": 1}])},
    "sim.dropped": lambda random: {"seconds": random.choice([0, 1])},
}


@dataclass(slots=True)
class PlannedSubmission:
    """A submission that a caller will make, and the answers to it."""

    tenant: str
    submission: Submission
    at_ms: int
    #: The job id of each answer that accepted it.
    ids: list[str] = field(default_factory=list)

    def with_canary(self) -> "PlannedSubmission":
        """With the text of its tenant, also as a tag if it may have one more."""
        canary, submission = CANARIES[self.tenant], self.submission
        tags = submission.tags if len(submission.tags) == len(TAGS) else (*submission.tags, canary)
        marked = replace(submission, payload={**submission.payload, "canary": canary}, tags=tags)
        return dataclasses.replace(self, submission=marked)


class Workload:
    """The jobs of one seed: a few types, submitted together or spread out, so that they contend with each other."""

    def __init__(self, world: World) -> None:
        random = world.random
        self._random = random
        self._seed = world.seed
        # In some seeds, many jobs grow too old.
        self._aging = Random(f"aging {world.seed}").choice([0.0, 0.0, 0.05, 0.3])
        self._begun = _EPOCH + timedelta(milliseconds=world.scheduler.now_ms)
        self._kinds = random.sample(sorted(_PLANS), random.choice([1, 2, 3, len(_PLANS)]))
        if world.rollout.planned:
            self._kinds += sorted(_PLANS_OF_ONE_VERSION)
        if Fault.CLOCK_FAR_OFF in world.faults.rates:
            # Its jobs run long enough to outlast a lease that such a clock has set.
            self._kinds.append("sim.steps")
        if "sim.overrun" in self._kinds:
            # Its neighbours still run when a handler has exceeded its time.
            self._kinds.append("sim.slots")
        self._grouped = random.choice([0.0, 0.3, 1.0])
        self._padded = random.choice([0.0, 0.0, 0.0, 0.0, 0.0, 0.4])
        self._groups = _GROUPS[: random.choice([1, len(_GROUPS)])]
        self._tenants = TENANTS[: random.choice([1, len(TENANTS)])]
        self.jobs = random.randint(1, 8)
        # Submissions arrive for as long as a deployment takes.
        self.window_ms = world.rollout.takes_ms or random.choice([50, 5_000, 60_000, 900_000])
        if "sim.overrun" in self._kinds:
            # Neighbours in one batch.
            self.jobs, self.window_ms = 8, 50

    def tenant(self) -> str:
        return self._random.choice(self._tenants)

    def submission(self, number: int) -> Submission:
        random = self._random
        kind = random.choice(self._kinds)
        payload = (_PLANS_OF_ONE_VERSION.get(kind) or _PLANS[kind])(random)
        made = Submission(type=kind, payload=payload, key=None if kind == "sim.unique" else f"key-{number}")
        made = replace(made, tags=TAGS[: number % (len(TAGS) + 1)])
        if random.random() < self._grouped:
            made = replace(made, group=random.choice(self._groups))
        if random.random() < 0.15:
            made = replace(made, delay=timedelta(seconds=random.choice([1, 30, 899, 901, 3000])))
        elif random.random() < 0.1:
            made = replace(made, run_at=self._begun + timedelta(hours=random.choice([1, 5])))
        if random.random() < 0.1:
            begins = made.run_at or self._begun + (made.delay or timedelta(0)) + timedelta(hours=1)
            made = replace(made, deadline=begins + timedelta(seconds=random.choice([1, 60, 3600])))
        # Their own chance leaves the rest of the seed as it is.
        aging = Random(f"age {self._seed} {number}")
        if aging.random() < self._aging:
            made = replace(made, max_age=timedelta(seconds=aging.choice([1, 60, 3_600, 86_400])))
        if random.random() < self._padded:
            made = replace(made, payload={**payload, "padding": "x" * random.choice([330, 2000, 100_000])})
        return made


def further_submissions(world: World) -> list[PlannedSubmission]:
    """In some seeds, odd values, a crowd of one limit key, and jobs that call a downstream, wait, book or have steps.

    Or that share the call of a batch handler, or a limit. Their own chance leaves the other seeds as they are.
    """
    random, made = Random(f"further submissions {world.seed}"), []
    if random.random() < _ODD:
        names = random.sample(sorted(ODD_VALUES), _ODD_JOBS)
        odd = {"at": "2045-01-31T08:00:00Z", "marks": []}
        made += [Submission(type="sim.unstorable", payload={"key": name, **odd}, key=name) for name in names]
    faulty = any(world.faults.rates.values())
    crowded = _CROWDED_AND_FAULTY if faulty else _CROWDED
    if random.random() < crowded and not world.rollout.planned:
        kind = random.choice(_LIMITED)
        payload = {"key": "crowd", "seconds": random.choice([0, 1, 20])}
        made += [Submission(type=kind, payload=payload, key=f"crowd-{number}") for number in range(_CROWD)]
        if kind == "sim.adaptive":
            # Slow ones follow fast ones, so that the concurrency rises and falls.
            slow = {"key": "crowd", "seconds": 3}
            made += [Submission(type=kind, payload=slow, key=f"slow-{number}") for number in range(_CROWD)]
    if random.random() < (_DEPENDENT_AND_FAULTY if faulty else _DEPENDENT):
        payload = {"seconds": random.choice([0, 0, 1]), "fails": random.choice([0, 0, 0, 1])}
        jobs = range(random.randint(1, _MOST_DEPENDENTS))
        made += [Submission(type="sim.dependent", payload=payload, key=f"dependent-{number}") for number in jobs]
    if random.random() < _WAITING:
        made += [
            Submission(
                type=random.choice(["sim.waits", "sim.waits", "sim.asks"]),
                payload={
                    "count": random.randint(1, 2),
                    "seconds": random.choice([0, 1, 9, 16, 40]),
                    "fails": random.choice([0, 1, 9]),
                },
                key=f"waits-{number}",
                group=random.choice([None, None, None, "waits"]),
            )
            for number in range(_WAITING_JOBS)
        ]
    planned = [PlannedSubmission(TENANTS[0], one, world.scheduler.now_ms + random.randint(0, 5_000)) for one in made]
    timed = [*bookings(world.seed), *stepwise_jobs(world.seed)]
    planned += [PlannedSubmission(TENANTS[0], one, world.scheduler.now_ms + at_ms) for at_ms, one in timed]
    planned += [
        PlannedSubmission(TENANTS[whose], one, world.scheduler.now_ms + at_ms)
        for at_ms, whose, one in batched_jobs(world.seed)
    ]
    planned += [
        PlannedSubmission(TENANTS[0], one, max(at_ms, world.scheduler.now_ms))
        for at_ms, one in rolled_back_jobs(world.seed, world.rollout)
    ]
    return planned + [
        PlannedSubmission(TENANTS[number % 2], one, world.scheduler.now_ms + at_ms)
        for number, (at_ms, one) in enumerate(deliveries(world.seed))
    ]


class TrackedSubmission:
    """Records and checks each acceptance of one planned submission."""

    def __init__(self, world: World, planned: PlannedSubmission, name: str) -> None:
        self._world = world
        self._name = name
        self.planned = planned
        world.submissions.append(planned)

    def accepted(self, job_id: str) -> None:
        self.planned.ids.append(job_id)
        world, key = self._world, f"{self.planned.tenant}#{job_id}"
        world.log(self._name, f"was told that {job_id} is accepted")
        item = world.jobs.items.get((key,))
        expired_before = item is not None and has_expired(item, world.scheduler.now_ms - _ANSWERED_WITHIN_MS)
        what = "the answer accepts a job that has expired"
        require_in_task(world.scheduler, not expired_before, "an accepted job has not expired", what, key)


def may_be_refused(planned: PlannedSubmission) -> bool:
    """Whether a rejection is correct: its time has passed, or a version of the code does not know its type.

    Or the transaction of another submission of the same unique job is under way, or what it supersedes forbids it.
    """
    submission = planned.submission
    timed = bool(submission.run_at or submission.deadline or submission.supersedes)
    return timed or submission.type in {"sim.unique", *_PLANS_OF_ONE_VERSION}


class Caller:
    """Submits until its job is accepted, and perhaps repeats the accepted submission."""

    def __init__(self, world: World, planned: PlannedSubmission, number: int) -> None:
        self._world = world
        self._planned = planned
        self._name = f"caller {number}"
        self._tracked = TrackedSubmission(world, planned, self._name)
        world.scheduler.at(planned.at_ms, self._begin)

    def _begin(self) -> None:
        self._world.scheduler.spawn(self._world.process(self._name), self._submit)

    def _submit(self) -> None:
        submission = self._planned.submission
        plain = not (submission.group or submission.delay or submission.run_at or submission.deadline)
        over_http = (plain and submission.key) or self._world.random.random() < _OVER_HTTP
        act = self._over_http if over_http else self._in_python
        for _ in range(30):
            if (job_id := self._tried(act)) is not None:
                self._tracked.accepted(job_id)
                if submission.key and self._world.faults.occurs(Fault.KEY_REUSED):
                    self._reuse_key(submission, job_id)
                if not self._world.faults.occurs(Fault.CALLER_REPEATS):
                    return
                self._world.scheduler.sleep(self._world.random.choice(_REPEATS_AFTER_MS))
            self._world.scheduler.sleep(self._world.random.randint(10, 60_000))

    def _tried(self, act: Callable[[], str | None]) -> str | None:
        """Submit once. A try that meets no fault is accepted."""
        counted = self._world.faults.counted
        before = counted.total()
        job_id = act()
        met_none = counted.total() == before and not any(counted[fault] for fault in _LASTING)
        if job_id is None and met_none and not self._world.rollout.planned and not may_be_refused(self._planned):
            what, about = f"{self._name} was refused", f"{self._planned.tenant}#"
            require_in_task(self._world.scheduler, False, "a submission that meets no fault is accepted", what, about)
        return job_id

    def _reuse_key(self, submission: Submission, job_id: str) -> None:
        key = f"{self._planned.tenant}#{job_id}"
        item = self._world.jobs.items.get((key,))
        other = self._with_another_body(submission)
        try:
            composition.parts().submit(other, tenant=self._planned.tenant, trace=self._name)
        except TidemillError as error:
            self._world.log(self._name, f"was refused a key used before: {type(error).__name__}")
            return
        late_ms = self._world.scheduler.now_ms + _ANSWERED_WITHIN_MS
        after = self._world.jobs.items.get((key,))
        # An operator may have purged the job; other checks cover its successor.
        gone = item is None or has_expired(item, late_ms) or after is None or after["created_at"] != item["created_at"]
        require_in_task(
            self._world.scheduler,
            gone,
            "one idempotency key is one body",
            "a different body was accepted under the key",
            key,
        )

    def _with_another_body(self, submission: Submission) -> Submission:
        """One member differs, and the submission stays valid."""
        begins = datetime.fromtimestamp(self._world.scheduler.now_ms / 1000, UTC)
        members: list[dict[str, Any]] = [
            {"payload": {**submission.payload, "padding": "another"}},
            {"type": "sim.plain" if submission.type == "sim.give-up" else "sim.give-up"},
            {"lane": None if submission.lane else Lane.BULK},
            {"delay": timedelta(seconds=7), "run_at": None, "deadline": None},
            {"run_at": begins + timedelta(hours=2), "delay": None, "deadline": None},
            {"deadline": begins + timedelta(days=9)},
            {"group": "another"},
            {"tags": ["another"]},
        ]
        chance = Random(f"another body {self._world.seed} {self._name}")
        return replace(submission, **chance.choice(members))

    def _over_http(self) -> str | None:
        submission, tenant = self._planned.submission, self._planned.tenant
        body = as_json(submission)
        answer = ask(self._world, "submit", "POST", "/jobs", tenant=tenant, key=submission.key, body=body)
        if answer and answer.status in {OK, ACCEPTED}:
            return str(answer.body["id"])
        if answer and answer.status in {UNPROCESSABLE, CONFLICT} and may_be_refused(self._planned):
            return None
        if answer and answer.status < BROKEN:
            raise AssertionError(f"submit rejected a valid submission: {answer}")
        return None

    def _in_python(self) -> str | None:
        """Submit from an application of the tenant that uses our Python client."""
        try:
            accepted = composition.parts().submit(
                self._planned.submission, tenant=self._planned.tenant, trace=self._name
            )
        except TidemillError as error:
            self._world.log(self._name, f"could not submit: {error}")
            return None
        return accepted.job.id


def run_tool(world: World, name: str, act: Callable[[Process], None]) -> None:
    """Run `act` now in a process of its own, as the command line does. It does not retry a refused call."""
    process = world.process(name)

    def tried() -> None:
        try:
            act(process)
        except TidemillError as error:
            world.log(name, f"gave up: {error}")

    world.scheduler.spawn(process, tried)
