"""Probes: one dead job of each cause is redriven first, and the others of that cause follow only if it succeeds.

So a redrive before the cause is fixed costs one run for each cause, and not one for each job.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from tidemill.application.groups.group_order import Group, group_of
from tidemill.application.ports import Clock, RedriveStore
from tidemill.domain.attempt.error_fingerprint import fingerprint, job_fingerprint
from tidemill.domain.job import AttemptError, Job
from tidemill.domain.states import State

#: The most causes of one redrive. The jobs of further causes stay dead until the next one.
MOST_PROBES: Final = 100
_LOOK_EVERY_SECONDS: Final = 1.0

#: The type of a job and the fingerprint of its error.
Cause = tuple[str, str]


class ProbeVerdict(StrEnum):
    """What became of a probe."""

    SUCCEEDED = "succeeded"
    #: It died again, or an attempt failed with the same error. In the second case its retries go on.
    FAILED = "failed again"
    #: Still alive at the end of the wait. It goes on.
    UNFINISHED = "has not ended in time"
    #: Another operator was faster, or other writes keep its group busy.
    NOT_REDRIVEN = "was not redriven"
    #: Cancelled or deleted.
    GONE = "was cancelled or deleted"


class Probe(Struct):
    """One dead job, as it was read."""

    job: Job
    redriven: bool = False
    #: None until it is known.
    verdict: ProbeVerdict | None = None


class Probes(Struct):
    """The probes of one redrive: choose them, redrive them, wait for them, then redrive what they approve.

    Memory grows with the number of causes, up to `MOST_PROBES`, and with the number of groups.
    """

    store: RedriveStore
    clock: Clock
    pause: Callable[[float], None]
    #: How long to wait for all of them.
    timeout: timedelta
    probes: dict[Cause, Probe] = field(default_factory=dict)
    #: The jobs that stay dead.
    held: int = 0

    def choose(self, jobs: Iterable[Job]) -> Sequence[Job]:
        """The probes among these jobs, which are in the order of their groups.

        Only the first job of a group can be a probe: another one would overtake it. If one cause has only
        such jobs, they stay dead until the next redrive. A job without a group need not wait for others.
        """
        groups: set[Group] = set()
        for job in jobs:
            cause, group = cause_of(job), group_of(job)
            first = group not in groups
            if group:
                groups.add(group)
            known = self.probes.get(cause)
            if first and (len(self.probes) < MOST_PROBES if known is None else known.job.group.key and not group):
                self.probes[cause] = Probe(job)
        return [probe.job for probe in self.probes.values()]

    def redriven(self, job: Job) -> None:
        """Call this when a probe was redriven."""
        self.probes[cause_of(job)].redriven = True

    def wait(self, ended: Callable[[Probe], object]) -> None:
        """Until the verdict of each probe is known. Calls `ended` with each probe at that time.

        The probes are ordinary jobs: they go on if the wait is interrupted.
        """
        until = self.clock() + self.timeout
        self._judge([probe for probe in self.probes.values() if not probe.redriven], ProbeVerdict.NOT_REDRIVEN, ended)
        while waiting := [probe for probe in self.probes.values() if probe.verdict is None]:
            found = self.store.get_many([(probe.job.tenant, probe.job.id) for probe in waiting])
            current = {(job.tenant, job.id): job for job in found}
            for probe in waiting:
                verdict = verdict_of(probe.job, current.get((probe.job.tenant, probe.job.id)))
                if verdict is not None:
                    self._judge([probe], verdict, ended)
            if self.clock() >= until:
                self._judge([probe for probe in waiting if probe.verdict is None], ProbeVerdict.UNFINISHED, ended)
            elif any(probe.verdict is None for probe in waiting):
                self.pause(_LOOK_EVERY_SECONDS)

    def approved(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Yield the jobs whose probe succeeded. Counts the others in `held`.

        A job of a group that stays dead keeps the later ones of its group dead, so that they do not overtake it.
        """
        stopped = {group_of(probe.job) for probe in self.probes.values() if probe.verdict is not ProbeVerdict.SUCCEEDED}
        for job in jobs:
            probe, group = self.probes.get(cause_of(job)), group_of(job)
            if probe and probe.verdict is ProbeVerdict.SUCCEEDED and (group is None or group not in stopped):
                yield job
            else:
                stopped.add(group)
                self.held += 1

    @property
    def all_succeeded(self) -> bool:
        return all(probe.verdict is ProbeVerdict.SUCCEEDED for probe in self.probes.values())

    @staticmethod
    def _judge(probes: Iterable[Probe], verdict: ProbeVerdict, ended: Callable[[Probe], object]) -> None:
        for probe in probes:
            probe.verdict = verdict
            ended(probe)


def cause_of(job: Job) -> Cause:
    return job.type, job_fingerprint(job)


def verdict_of(probe: Job, current: Job | None) -> ProbeVerdict | None:
    """None while the job may still succeed. `probe` is the dead job, as it was before its redrive."""
    if current is None or current.created_at != probe.created_at or current.state is State.CANCELLED:
        return ProbeVerdict.GONE
    if current.state is State.SUCCEEDED:
        return ProbeVerdict.SUCCEEDED
    before = {_attempt(error) for error in probe.known_errors}
    new = [error for error in current.known_errors if _attempt(error) not in before]
    same = any(fingerprint(error.error_class, error.message) == job_fingerprint(probe) for error in new)
    return ProbeVerdict.FAILED if current.state is State.DEAD or same else None


def _attempt(error: AttemptError) -> tuple[int, object]:
    """Attempts begin at 1 again with each redrive."""
    return error.attempt, error.at
