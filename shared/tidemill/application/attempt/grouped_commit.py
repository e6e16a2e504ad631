"""Grouped commit: the messages of a batch claim their jobs in one call, and settle their successes in one call.

For types that allow it, and first attempts only. Each statement of a call has its own condition and its own answer. A
job that it leaves open is claimed or settled by the call of a single job, with the same token, as the store does it. So
a refused, a throttled and a lost call cost time, and change nothing else.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from msgspec import Struct

from tidemill.application.attempt.combiner import Combiner
from tidemill.application.configuration import CurrentConfiguration
from tidemill.application.job_types import JobTypes
from tidemill.application.ports import FEWEST_TOGETHER, MOST_TOGETHER, Settling
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.attempt.retry import LEAST_GROUPED_ATTEMPTS
from tidemill.domain.dispatch.job_message import FirstRun, Reference
from tidemill.domain.errors import UnknownJobTypeError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State

#: The longest that a claim or a settle waits for the others of its batch.
LONGEST_WAIT_SECONDS: Final = 0.1


class AttemptWrites(Protocol):
    """Claims and settles one job, as the store of jobs does."""

    def claim(
        self, reference: Reference, *, token: str, now: datetime, lease_end: datetime, worker: str = ""
    ) -> Job: ...

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]: ...


class FirstClaim(Struct, frozen=True, kw_only=True):
    """The claim of a job that has not begun."""

    reference: Reference
    first_run: FirstRun
    token: str
    now: datetime
    lease_end: datetime
    worker: str


#: The job as written, or the refusal that the call of a single job would meet. None: make that call.
Answer = Job | WriteRefusedError | None


class GroupedWrites(Protocol):
    """Writes several jobs in one call. It raises nothing, and answers each in order."""

    def claim(self, claims: Sequence[FirstClaim]) -> Sequence[Answer]: ...

    def settle(self, successes: Sequence[Settling]) -> Sequence[Answer]: ...


class GroupedCommit:
    """`AttemptWrites` for the messages of one batch."""

    def __init__(
        self,
        single: AttemptWrites,
        writes: GroupedWrites,
        job_types: JobTypes,
        configuration: CurrentConfiguration,
    ) -> None:
        self._single = single
        self._writes = writes
        self._job_types = job_types
        self._configuration = configuration
        #: The jobs that have been claimed with others, and have not settled.
        self._claimed: set[object] = set()
        self.expect(())

    def expect(self, messages: Iterable[Reference]) -> None:
        """All messages of the batch, before any of them is claimed. A job that comes twice counts once."""
        #: The jobs that are to be claimed with others.
        self._expected: set[object] = {
            _key(each) for each in messages if each.first_run and self._allows(each.first_run.type)
        }
        self._claims: Combiner[FirstClaim, Answer] = _combiner(self._claim, self._expected)
        self._successes: Combiner[Settling, Answer] = _combiner(self._settle, self._expected)

    def leave(self, reference: Reference) -> None:
        """The attempt from this message has ended."""
        self._claims.leave(_key(reference))
        self._successes.leave(_key(reference))

    def claim(self, reference: Reference, *, token: str, now: datetime, lease_end: datetime, worker: str = "") -> Job:
        key, first_run = _key(reference), reference.first_run
        if first_run and first_run.due <= now and _taken(key, self._expected):
            claim = FirstClaim(
                reference=reference, first_run=first_run, token=token, now=now, lease_end=lease_end, worker=worker
            )
            answer = self._claims.combine(claim, by=key)
            if isinstance(answer, Job):
                self._claimed.add(key)
                return answer
            # It settles alone, too.
            self._successes.leave(key)
            if answer:
                raise answer
        else:
            self.leave(reference)
        return self._single.claim(reference, token=token, now=now, lease_end=lease_end, worker=worker)

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]:
        key = (job.tenant, job.id)
        if _taken(key, self._claimed):
            if settlement.state is State.SUCCEEDED and not settlement.writes and not settlement.follow_ups:
                answer = self._successes.combine(Settling(job, settlement, now), by=key)
                if isinstance(answer, WriteRefusedError):
                    raise answer
                if answer:
                    return ()
            else:
                self._successes.leave(key)
        return self._single.settle(job, settlement, now=now)

    def _claim(self, claims: Sequence[FirstClaim]) -> Sequence[Answer]:
        together = [each for each in claims if self._attempts(each) >= LEAST_GROUPED_ATTEMPTS]
        if len(together) < FEWEST_TOGETHER:
            return [None] * len(claims)
        answers = dict(zip((each.token for each in together), self._writes.claim(together), strict=True))
        return [answers.get(each.token) for each in claims]

    def _settle(self, successes: Sequence[Settling]) -> Sequence[Answer]:
        return self._writes.settle(successes) if len(successes) >= FEWEST_TOGETHER else [None]

    def _allows(self, name: str) -> bool:
        try:
            return self._job_types.get(name).grouped
        except UnknownJobTypeError:
            return False

    def _attempts(self, claim: FirstClaim) -> int:
        """Return the attempts of the type, as an operator may have set them."""
        job_type = self._job_types.get(claim.first_run.type)
        overrides = self._configuration().overrides_of(job_type.name, shares=job_type.shared_limit, now=claim.now)
        return job_type.overridden(overrides).retry.max_attempts


def _key(reference: Reference) -> tuple[str, str]:
    return reference.tenant, reference.job_id


def _taken(key: object, keys: set[object]) -> bool:
    """Take the key out of `keys`. Several threads may ask for the same key: one of them gets it."""
    try:
        keys.remove(key)
    except KeyError:
        return False
    return True


def _combiner(work: Callable[[Sequence[Any]], Sequence[Answer]], keys: Iterable[object]) -> Combiner[Any, Answer]:
    return Combiner(
        work,
        expected=keys,
        longest_wait_seconds=LONGEST_WAIT_SECONDS,
        batch_of=lambda _request: (None, MOST_TOGETHER),
    )
