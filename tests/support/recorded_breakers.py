"""A run whose breakers note what it asks and reports."""

from datetime import datetime, timedelta
from typing import Any

from tests.support.builders import NOW, a_job
from tidemill.application.breakers.breaker_use import BreakerUse
from tidemill.domain.breakers.breaker import BreakerPolicy
from tidemill.domain.errors import JobTimeoutError
from tidemill.domain.job import Job

PAY, MAIL, MAPS = (BreakerPolicy(name=name) for name in ("pay", "mail", "maps"))
JOB = a_job(owner="worker")
DOWN = ConnectionError("down")
LATE = JobTimeoutError("it took too long")
DEADLINE = NOW + timedelta(minutes=1)


class Recorded:
    """Breakers that note each result."""

    def __init__(self, *, refusing: set[str], opened: set[str], unsaved: set[str]) -> None:
        self.refusing = refusing
        self.opened = opened
        #: Those whose results the store does not take.
        self.unsaved = unsaved
        self.asked: list[str] = []
        self.results: list[tuple[str, ...]] = []
        self.heard: list[tuple[str, datetime]] = []
        #: Whether each result counts.
        self.counted: list[bool] = []

    def would_admit(self, policy: BreakerPolicy) -> bool:
        self.asked.append(f"{policy.name}?")
        return policy.name not in self.refusing

    def admits(self, policy: BreakerPolicy, job: Job) -> bool:
        self.asked.append(policy.name)
        return policy.name not in self.refusing

    def blocks(self, name: str) -> bool:
        return name in self.opened

    def succeeded(self, policy: BreakerPolicy, job: Job, *, counts: bool) -> bool:
        self.results.append((policy.name, "succeeded"))
        self.counted.append(counts)
        return policy.name not in self.unsaved

    def failed(self, policy: BreakerPolicy, job: Job, *, call: str, error: str, counts: bool) -> bool:
        self.results.append((policy.name, call, error))
        self.counted.append(counts)
        return policy.name not in self.unsaved

    def hear_others(self, policy: BreakerPolicy, *, until: datetime) -> None:
        self.heard.append((policy.name, until))

    def give_up(self, name: str, job: Job) -> None:
        self.results.append((name, "given up"))


class ARun:
    """A run with what it may call."""

    def __init__(
        self,
        *depends_on: BreakerPolicy,
        refusing: tuple[str, ...] = (),
        opened: tuple[str, ...] = (),
        unsaved: tuple[str, ...] = (),
        job: Job = JOB,
        rules: Any = None,
    ) -> None:
        self.breakers = Recorded(refusing={*refusing}, opened={*opened}, unsaved={*unsaved})
        self.use = BreakerUse(
            self.breakers,  # type: ignore[arg-type]  # a stand-in
            job,
            depends_on=depends_on,
            rules=rules,
            deadline=lambda: DEADLINE,
        )

    @property
    def results(self) -> list[tuple[str, ...]]:
        """Since they were read last."""
        found, self.breakers.results = self.breakers.results, []
        return found
