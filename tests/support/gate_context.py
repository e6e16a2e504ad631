"""What the gates of one attempt know, with collaborators that note each call."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.support.builders import INVOCATION, NOW, SECOND, types_of
from tests.support.configurations import configured
from tidemill.application.attempt.attempt_context import AttemptHooks
from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.attempt.outcomes import Held
from tidemill.domain.breakers.breaker import BreakerPolicy
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Rate
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.operations.setting import Setting
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import Line


@dataclass
class GateContext:
    """What gates need of an `AttemptContext`, and of its limits, payloads, releaser and superseder."""

    job_types: JobTypes
    configured: RuntimeConfiguration = NOTHING_SET
    entered: Entered | datetime | Line = field(default_factory=Entered)
    #: What the superseder answers or raises; None for no superseder.
    undone: bool | Exception | None = None
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    #: The downstreams that are open.
    opened: set[str] = field(default_factory=set)
    counts_calls: bool = False

    @property
    def limits(self) -> "GateContext":
        return self

    payloads = releaser = store = limits

    @property
    def breakers(self) -> "GateContext | None":
        return self if self.counts_calls else None

    @property
    def superseder(self) -> "Callable[[], GateContext] | None":
        return None if self.undone is None else lambda: self

    def clock(self) -> datetime:
        return NOW

    steady = clock

    def configuration(self) -> RuntimeConfiguration:
        return self.configured

    def held_below(self, ceiling_seconds: float, cause: HoldCause) -> Held:
        """Until the ceiling."""
        return Held(until=NOW + ceiling_seconds * SECOND, cause=cause)

    def load(self, job: Job) -> str:
        return job.payload.text or ""

    def list_line(self, line: Line, rate: Rate, *, job: tuple[str, str], now: datetime) -> None:
        self.calls.append(("list", line, rate, job, now))

    def acquire(self, slot: LimitSlot, *, now: datetime) -> Entered | datetime | Line:
        self.calls.append(("acquire", slot, now))
        return self.entered

    def leave(self, slot: LimitSlot, *, line_stands: bool, lowered: Callable[[Any], None]) -> None:
        self.calls.append(("leave", slot, line_stands))
        lowered("change")

    def pass_on(self, job: Job) -> None:
        self.calls.append(("pass on", job.id))

    def drain(self, line: Line) -> None:
        self.calls.append(("drain", line))

    def ready(self, job: Job) -> bool:
        self.calls.append(("ready", job.id))
        if isinstance(self.undone, Exception):
            raise self.undone
        return bool(self.undone)

    def would_admit(self, policy: BreakerPolicy) -> bool:
        return policy.name not in self.opened

    def admits(self, policy: BreakerPolicy, job: Job) -> bool:
        del job
        return policy.name not in self.opened

    def blocks(self, name: str) -> bool:
        return name in self.opened

    def hear_others(self, policy: BreakerPolicy, *, until: datetime) -> None:
        self.calls.append(("hear others", policy.name, until))

    def succeeded(self, policy: BreakerPolicy, job: Job, *, counts: bool = True) -> bool:
        del job, counts
        self.opened.discard(policy.name)
        return True

    def give_up(self, name: str, job: Job) -> None:
        self.calls.append(("give up", name, job.id))


@dataclass
class GateAttempt:
    """`AttemptState` of an attempt under way, whose handler is not called yet."""

    ended: bool = False
    in_handler: bool = False

    def has_ended(self) -> bool:
        return self.ended

    def require_under_way(self) -> None:
        pass

    def written(self, job: Job) -> None:
        raise AssertionError(f"no gate of these tests writes job {job.id}")


def run_of(
    job: Job,
    *job_types: JobType,
    settings: tuple[Setting, ...] = (),
    context: GateContext | None = None,
    attempt: GateAttempt | None = None,
    **hooks: Any,
) -> tuple[ClaimedRun, GateContext]:
    """A run that has claimed the job, with its context. `hooks` are fields of `AttemptHooks`."""
    known = context or GateContext(types_of(*job_types))
    if settings:
        known.configured = configured(*settings)
    run = ClaimedRun(
        job,
        known,  # type: ignore[arg-type]  # what gates need of it
        AttemptHooks(**hooks),
        deadline=NOW + INVOCATION,
        attempt=attempt or GateAttempt(),
    )
    return run, known
