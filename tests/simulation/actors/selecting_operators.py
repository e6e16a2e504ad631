"""Operators who search and count jobs, and ask which of them a purge or a redrive would take. They change nothing."""

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from tests.simulation.actors.callers import run_tool
from tests.simulation.actors.operator_objects import redriver
from tests.simulation.checks.violation import (
    Item,
    has_expired,
    number_of,
    require_in_task,
    state_of,
    tenant_of,
    text_of,
    waits_alone,
)
from tests.simulation.deployment import JOBS_TABLE
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import LARGEST_SKEW_MS
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import LONGEST_INDEX_LAG_MS, World
from tidemill.application.job_filter import JobFilter
from tidemill.application.passes.job_search import JobSearch
from tidemill.application.passes.pace import Pace
from tidemill.aws import clients
from tidemill.domain.job import Job
from tidemill.domain.states import TERMINAL, State
from tidemill.dynamodb.operations.attention_counts import AttentionCounts
from tidemill.dynamodb.passes.job_scan import DynamoJobScan
from tidemill.system import clock

_CHECK: Final = "a selection finds the jobs that it names"
#: Share of seeds with such an operator, and how often they ask.
_SHARE: Final = 0.4
_QUESTIONS: Final = 6
#: Share of the questions about a purge that name a time.
_AGED: Final = 0.5
_READ_UNITS: Final = 25
#: Longest lag without that fault.
_SHORT_LAG_MS: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Fits = Callable[[Item], bool]


class SelectingOperators:
    """The operator of one world. Their own chance leaves all else as it is in seeds without them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"selecting operators {world.seed}")

    def plan(self, until_ms: int) -> None:
        world = self._world
        known = not world.rollout.planned and Fault.CLOCK_FAR_OFF not in world.faults.rates
        if self._random.random() < _SHARE and known:
            for _ in range(_QUESTIONS):
                at_ms = self._random.randint(self._world.scheduler.now_ms, until_ms)
                self._world.scheduler.at(at_ms, run_tool, self._world, "dora", self._ask)

    def _ask(self, _process: Process) -> None:
        self._random.choice([self._purge, self._redrive, self._search, self._count])()

    def _purge(self) -> None:
        random = self._random
        states = random.sample(sorted(TERMINAL), random.choice([0, 0, 1, 2]))
        types = self._some((text_of(item, "type") for item in self._jobs().values()), random.choice([0, 0, 1]))
        ended = [number_of(item, "finished_at") for item in self._jobs().values() if "finished_at" in item]
        before_ms = random.choice(ended) if ended and random.random() < _AGED else None
        purge = JobFilter(
            states=[State(state) for state in states or TERMINAL],
            types=types,
            ended_until=None if before_ms is None else _EPOCH + timedelta(milliseconds=before_ms),
        )

        def fits(item: Item) -> bool:
            chosen = (not states or text_of(item, "state") in states) and (not types or text_of(item, "type") in types)
            early = before_ms is None or number_of(item, "finished_at") < before_ms
            return state_of(item) in TERMINAL and chosen and early

        self._require_same(lambda: self._found(purge), fits, lag_ms=self._lag_ms, expired=False)

    def _redrive(self) -> None:
        jobs = self._jobs().values()
        types = self._some((text_of(item, "type") for item in jobs), self._random.choice([0, 0, 1]))
        selected = self._some(map(_id, jobs), self._random.choice([0, 0, 2]))

        def fits(item: Item) -> bool:
            chosen = (not types or text_of(item, "type") in types) and (not selected or _id(item) in selected)
            return state_of(item) is State.DEAD and chosen

        redrive = redriver()
        self._require_same(
            lambda: redrive.dead_jobs(JobFilter(types=types, ids=selected)), fits, lag_ms=self._lag_ms, expired=False
        )

    def _search(self) -> None:
        """By any of the filters of `tidemill list`, page by page."""
        random, jobs = self._random, self._jobs()
        some = random.choice([*jobs.items()]) if jobs else ("", {})
        tenant, since_ms = tenant_of(some[0]), number_of(some[1], "created_at")
        chosen: dict[str, Any] = {
            "tenant": tenant,
            "states": [state_of(some[1]) or State.QUEUED],
            "types": [text_of(some[1], "type")],
            "since": _EPOCH + timedelta(milliseconds=since_ms),
            "until": _EPOCH + timedelta(milliseconds=since_ms),
        }
        names = random.sample(sorted(chosen), random.choice([0, 1, 1, 2]))

        def fits(item: Item) -> bool:
            at_ms = number_of(item, "created_at")
            return (
                ("tenant" not in names or tenant_of(text_of(item, "pk")) == tenant)
                and ("states" not in names or state_of(item) in chosen["states"])
                and ("types" not in names or text_of(item, "type") in chosen["types"])
                and ("since" not in names or at_ms >= since_ms)
                and ("until" not in names or at_ms < since_ms)
            )

        wanted = JobFilter(**{name: chosen[name] for name in names})
        self._require_same(lambda: self._found(wanted), fits, lag_ms=self._lag_ms, expired=False)

    def _found(self, wanted: JobFilter) -> Iterator[Job]:
        pace = Pace(_READ_UNITS, clock=clock.now, pause=time.sleep)
        search = JobSearch(DynamoJobScan(clients.dynamodb(), table=JOBS_TABLE), pace)
        steps = search.steps(wanted, now=clock.now(), after=None)
        return (job for step in steps for job in step.jobs)

    def _count(self) -> None:
        """Count as `tidemill status` does.

        The count is checked if it did not change meanwhile, and the index never lagged.
        """
        state = self._random.choice([State.SCHEDULED, State.DEAD])
        asked_ms = self._world.scheduler.now_ms
        counted = AttentionCounts(clients.dynamodb(), table=JOBS_TABLE).jobs(state)
        changed = [change for change in self._world.trace.changes if change.at_ms >= asked_ms - _SHORT_LAG_MS]
        if not self._world.faults.counted[Fault.INDEX_LAG] and not any(
            _listed_as(item, state) for change in changed for item in (change.before, change.after)
        ):
            number = sum(_listed_as(item, state) for item in self._jobs().values())
            what = f"{counted.number} jobs are {state}, not {number}"
            # A count of a partition is bounded.
            right = counted.number == number if counted.exact else counted.number < number
            require_in_task(self._world.scheduler, right, "operators count jobs", what, "*")

    def _require_same(self, plan: Callable[[], Iterable[Job]], fits: Fits, *, lag_ms: int, expired: bool) -> None:
        """Jobs that fit during the whole question are found, and what is found fitted at some time during it."""
        asked_ms, before = self._world.scheduler.now_ms, self._jobs()
        found = {f"{job.tenant}#{job.id}" for job in plan()}
        seen: dict[str, list[Item | None]] = {key: [item] for key, item in before.items()}
        for change in self._world.trace.changes:
            if change.at_ms >= asked_ms - lag_ms:
                seen.setdefault(change.key, []).extend([change.before, change.after])
        late_ms = LARGEST_SKEW_MS + lag_ms
        for key in sorted(found):
            fitted = any(item is not None and "state" in item and fits(item) for item in seen.get(key, []))
            self._require(fitted, "it does not fit", key)
            gone = not expired and all(self._is_gone(item, -late_ms) for item in seen[key])
            self._require(not gone, "it has expired", key)
        for key, items in seen.items():
            fitted = all(item is not None and "state" in item and fits(item) for item in items)
            gone = not expired and any(self._is_gone(item, late_ms) for item in items)
            # By the operator's clock it may end in the future.
            late = any(number_of(item, "finished_at") > asked_ms - 2 * late_ms for item in items)
            self._require(not fitted or gone or late or key in found, "it was left out", key)

    @property
    def _lag_ms(self) -> int:
        """How old an entry of an index, or an item that is not read consistently, may be."""
        return LONGEST_INDEX_LAG_MS if self._world.faults.rates.get(Fault.INDEX_LAG) else _SHORT_LAG_MS

    def _is_gone(self, item: Item | None, late_ms: int) -> bool:
        return item is not None and has_expired(item, self._world.scheduler.now_ms, late_ms=late_ms)

    def _jobs(self) -> dict[str, Any]:
        return {key: item for (key,), item in self._world.jobs.items.items() if "state" in item}

    def _some(self, names: Iterable[str], count: int) -> list[str]:
        known = sorted(set(names))
        return self._random.sample(known, min(count, len(known)))

    def _require(self, holds: bool, what: str, key: str) -> None:
        require_in_task(self._world.scheduler, holds, _CHECK, what, key)


def _listed_as(item: Item | None, state: State) -> bool:
    """Jobs that wait for a signal are counted with the scheduled ones."""
    return text_of(item, "state") == state or (state is State.SCHEDULED and waits_alone(item))


def _id(item: Item) -> str:
    return text_of(item, "pk").rpartition("#")[2]


__all__ = ["SelectingOperators"]
