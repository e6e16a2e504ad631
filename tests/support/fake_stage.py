"""A stage whose incident shows in an alarm, and ends when what undoes it has been done."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from unittest.mock import MagicMock

from demo.drills.alarm_watch import PAGE
from demo.drills.downstream import Behaviour, healthy
from demo.drills.stage import Answer
from tests.support.builders import NOW, a_job
from tests.support.drill_cures import CURES
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import CANARY_TYPE, Lane


class FakeDownstream:
    """Its failure breaks the stage, and its repair is a part of the cure."""

    port = 1

    def __init__(self, stage: "FakeStage") -> None:
        self._stage = stage
        self.failures = 0
        #: Further calls that succeed between two questions: while the stage is broken, and with a command of the cure.
        self.served_broken, self.served_with_setting = 1, 5
        self._served = 0
        self.closed = False

    def behave(self, behaviour: Behaviour) -> None:
        if behaviour is healthy:
            self._stage.cured("the service works")
        else:
            self._stage.broken = True

    def calls(self) -> Sequence[HTTPStatus]:
        self._served += self.served_with_setting if self._stage.executed else self.served_broken
        return [HTTPStatus.SERVICE_UNAVAILABLE] * self.failures + [HTTPStatus.NO_CONTENT] * self._served

    def close(self) -> None:
        self.closed = True


class FakeStage:
    """Broken by a call of its client, a killed worker or a flood.

    Jobs end before that, and after the whole cure of this drill. The alarm resolves with its part of the cure. Other
    commands and deployments change nothing.
    """

    def __init__(self, drill: str) -> None:
        cure = CURES[drill]
        self._needed = [*cure.alarm, *cure.jobs]
        self._left_for_jobs = len(cure.jobs)
        self.sdk = MagicMock()
        self._shown = cure.shown
        self._refusal = cure.refusal
        self.refused_after = cure.refused_after
        self.broken = False
        self.executed: list[str] = []
        self._jobs: dict[str, Job] = {}
        self._effects: dict[str, list[str]] = {}
        #: What goes wrong with the next accepted job.
        self.loses = self.doubles = False
        #: Whether jobs begin a minute late after the cure, and whether single submissions are refused as the cure says.
        self.late = False
        self.refuses = True
        #: From the submission of a canary to its success. None: it does not end.
        self.canary_takes: timedelta | None = timedelta(seconds=3)
        self._canaries: list[Job] = []
        self.service = FakeDownstream(self)
        self.overrides: list[Mapping[str, Any]] = []

    def downstream(self) -> FakeDownstream:
        return self.service

    def status(self) -> Mapping[str, Any]:
        cause, key = self._shown
        lines = [{"cause": cause, "key": key, "jobs": 5}] if self.broken else []
        return {"parked_lines": lines, "overrides": self.overrides}

    def explain(self, id_: str) -> str:
        return f"{id_} waits. The number adapts between 1 and 20, and was lowered last 3s ago."

    def client(self, service: str) -> Any:
        self.broken = self.broken or not self.executed
        return self.sdk(service)

    def function(self, verb: str) -> str:
        return f"function-{verb}"

    def schedule(self, verb: str) -> Mapping[str, Any]:
        return {"Name": f"schedule-{verb}"}

    def mapping(self, verb: str) -> str:
        return f"mapping-{verb}"

    def jobs_table(self) -> str:
        return "jobs"

    def canaries(self) -> Sequence[Job]:
        """Further ones at each call."""
        ended: dict[str, Any] = {}
        if self.canary_takes is not None:
            ended = {"state": State.SUCCEEDED, "finished_at": NOW + self.canary_takes}
        self._canaries += [a_job(tenant="canary", type=CANARY_TYPE, lane=lane, **ended) for lane in Lane]
        return self._canaries

    def submit(self, jobs: Sequence[Mapping[str, Any]], *, role: str) -> Sequence[str | None]:
        ids = []
        for job in jobs:
            accepted = a_job(tenant=role, type=job["type"], lane=Lane.DEFAULT)
            self._jobs[accepted.id] = accepted
            if ledger := job.get("payload", {}).get("ledger"):
                self._effects[ledger] = ["1"] * (2 if self.doubles else 1)
            if self.loses:
                del self._jobs[accepted.id]
                self.loses = False
            self.doubles = False
            # A flood of jobs is an incident too.
            self.broken = self.broken or ("ledger" not in job.get("payload", {}) and bool(self._needed))
            ids.append(accepted.id)
        return ids

    def submit_one(self, job: Mapping[str, Any], *, role: str) -> Answer:
        cured = not self._needed
        if self.executed and self._refusal and self.refuses and (not cured or self.refused_after):
            return Answer(self._refusal, retry_after=30)
        (id_,) = self.submit([job], role=role)
        return Answer(HTTPStatus.ACCEPTED, id_)

    def jobs(self, ids: Collection[str]) -> Mapping[str, Job]:
        healthy = not self.broken and not self.executed
        ended = healthy or not self._needed
        found = [self._jobs[id_] for id_ in ids if id_ in self._jobs]
        return {job.id: self._ended(job) if ended else job for job in found}

    def _ended(self, job: Job) -> Job:
        begun = job.created_at + timedelta(minutes=self.late)
        claim = Transition(at=begun, state=State.RUNNING, cause=Why.CLAIMED)
        return replace(job, state=State.SUCCEEDED, history=(claim,))

    def effects(self, ledgers: Collection[str]) -> Mapping[str, Sequence[str]]:
        return {ledger: self._effects[ledger] for ledger in ledgers if ledger in self._effects}

    def kill_worker(self, verb: str, ids: Collection[str]) -> None:
        self.broken = True

    def deploy(self, settings: Sequence[str]) -> None:
        """A broken or a fixed version."""
        self.broken = self.broken or not self.executed
        self.cured(f"deploy {' '.join(settings)}")

    def deploy_variable(self, verb: str, name: str, value: str) -> None:
        """A broken or a fixed version."""
        self.broken = self.broken or not self.executed
        self.cured(f"deploy {verb} {name}={value}")

    def execute(self, words: Sequence[str]) -> None:
        self.executed.append(" ".join(words))
        self.cured(self.executed[-1])

    def cured(self, what: str) -> None:
        if self._needed and re.fullmatch(self._needed[0], what):
            del self._needed[0]
            self.broken = self.broken and len(self._needed) > self._left_for_jobs


class FakeWatch:
    """Its alarm fires two evaluations after the stage broke. `also` fires with it."""

    minute_seconds = 60.0

    def __init__(self, stage: FakeStage, alarm: str | None, *, also: str = "") -> None:
        self._stage = stage
        self._alarms = frozenset(filter(None, (alarm, also, PAGE)))
        self._evaluations = self._since = 0
        self.firing = frozenset[str]()
        self.pages = frozenset[str]()

    def forget_pages(self) -> None:
        self.pages = frozenset()

    def next(self) -> None:
        self._evaluations += 1
        self._since = self._since + 1 if self._stage.broken else 0
        self.firing = self._alarms if self._since > 1 else frozenset()
        self.pages |= self.firing - {PAGE}

    def now(self) -> float:
        return 60.0 * self._evaluations


class DeafWatch(FakeWatch):
    """Hears no alarm."""

    def next(self) -> None:
        super().next()
        self.firing = frozenset()
