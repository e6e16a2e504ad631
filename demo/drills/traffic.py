"""`Traffic`: the jobs of one drill, and what became of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from demo.drills.errors import DrillError
from demo.drills.stage import Answer, Stage
from tidemill.domain.history import Why
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.local.wait import wait_until

#: The type of the jobs with an effect.
TYPE: Final = "demo.ordered"
#: The number of jobs in each part of a drill.
JOBS: Final = 5
#: A job on a healthy stage begins within this time.
PROMPT_SECONDS: Final = 10
#: For jobs on a healthy stage.
PATIENCE_SECONDS: Final = 60
#: The role of ordinary callers.
CALLER: Final = "drill"
#: The transitions by which a job is dispatched again without a run that reported a result.
_SENT_AGAIN: Final = frozenset({Why.NUDGED, Why.RUN_LOST, Why.REDRIVEN})


@dataclass(frozen=True, slots=True)
class Replays:
    #: Runs and dispatches of the jobs beyond the first of each.
    messages: int
    #: The jobs that ran or were dispatched more than once, and those of them that succeeded.
    jobs: int
    succeeded: int


class Traffic:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        #: All accepted jobs, and the ledger of those that have an effect.
        self._accepted: dict[str, str | None] = {}

    def submit(
        self, number: int = JOBS, *, type_: str = TYPE, payload: Mapping[str, Any] | None = None, **fields: Any
    ) -> Sequence[str]:
        """Submit jobs with an effect that is not idempotent: a second run shows in the ledger of the job.

        `payload` and `fields`: more of the payload, and of each job.
        """
        ledgers = [uuid4().hex for _ in range(number)]
        more = payload or {}
        jobs = [{"type": type_, "payload": {"ledger": each, "number": 1, **more}, **fields} for each in ledgers]
        ids = self._stage.submit(jobs, role=CALLER)
        self._accepted |= {id_: ledger for id_, ledger in zip(ids, ledgers, strict=True) if id_}
        return [id_ for id_ in ids if id_]

    def also(self, jobs: Sequence[Mapping[str, Any]], *, role: str = CALLER) -> Sequence[str]:
        """Submit further jobs, whose effect is not counted. Raises DrillError if any is refused."""
        ids = self.some(jobs, role=role)
        if len(ids) < len(jobs):
            raise DrillError(f"{len(jobs) - len(ids)} of {len(jobs)} jobs were refused")
        return ids

    def some(self, jobs: Sequence[Mapping[str, Any]], *, role: str = CALLER) -> Sequence[str]:
        """Submit jobs that may be refused. Returns the ids of the accepted ones."""
        ids = [id_ for id_ in self._stage.submit(jobs, role=role) if id_]
        self._accepted |= dict.fromkeys(ids)
        return ids

    def offer(self, job: Mapping[str, Any], *, role: str = CALLER) -> Answer:
        """Submit one further job, whose effect is not counted, and which may be refused."""
        answer = self._stage.submit_one(job, role=role)
        if answer.id:
            self._accepted[answer.id] = None
        return answer

    def settle(self) -> None:
        """Wait until all jobs have ended. Raises WaitError."""
        wait_until(self.ended, PATIENCE_SECONDS, "the jobs to end")

    def ended(self) -> bool:
        found = self._stage.jobs(self._accepted)
        return all(job.state.terminal and job.state is not State.DEAD for job in found.values())

    def faults(self) -> Iterator[str]:
        """Each accepted job that is lost, did not succeed, or has another number of effects than one."""
        found = self._stage.jobs(self._accepted)
        effects = self._stage.effects([ledger for ledger in self._accepted.values() if ledger])
        for id_, ledger in self._accepted.items():
            if id_ not in found:
                yield f"job {id_} is lost"
            elif found[id_].state is not State.SUCCEEDED:
                yield f"job {id_} is {found[id_].state}"
            elif ledger and (number := len(effects.get(ledger, ()))) != 1:
                yield f"job {id_} has {number} effects"

    def __len__(self) -> int:
        return len(self._accepted)

    def replays(self) -> Replays:
        found = self._stage.jobs(self._accepted).values()
        again = {job.id: count for job in found if (count := _replays(job))}
        succeeded = sum(job.state is State.SUCCEEDED for job in found if job.id in again)
        return Replays(sum(again.values()), len(again), succeeded)


def late_starts(jobs: Sequence[Job]) -> Iterator[str]:
    """Says which of the jobs, submitted for at once, did not begin soon."""
    starts = {job.id: [each.at for each in job.history if each.cause == Why.CLAIMED] for job in jobs}
    for job in jobs:
        if not starts[job.id]:
            yield f"job {job.id} has no first run in its history"
        elif (seconds := (min(starts[job.id]) - job.created_at).total_seconds()) > PROMPT_SECONDS:
            yield f"job {job.id} began {seconds:.0f} s late"


def _replays(job: Job) -> int:
    causes = [transition.cause for transition in job.history]
    return max(causes.count(Why.CLAIMED) - 1, sum(causes.count(why) for why in _SENT_AGAIN), 0)
