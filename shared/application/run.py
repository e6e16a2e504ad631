"""Run: one attempt at one job, from a message to a settled document."""

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from shared.application.job_types import JobType, JobTypes, Run
from shared.application.ports import Clock, Draw, JobStore, NewToken
from shared.domain.errors import (
    EffectRefusedError,
    JobTimeoutError,
    MillraceError,
    StoreUnavailableError,
    TransactionConflictError,
    UnknownJobTypeError,
    WriteRefusedError,
)
from shared.domain.job import DeathReason, Job, Letter, Reference, reference_of
from shared.domain.letters import LetterAction, letter_action
from shared.domain.outcomes import Done, Failed, Outcome, Succeeded, crash_outcome, settlement
from shared.domain.retry import RetryPolicy
from shared.domain.verdict import Verdict, judge

LARGEST_RESULT_BYTES: Final = 32 * 1024
#: Lease beyond the invocation's end, for clocks that differ.
CLOCK_SKEW_MARGIN: Final = timedelta(seconds=2)
#: How often a settle that meets another transaction or a store too busy is tried in place, and the ceiling of the first
#: pause between, which doubles.
SETTLE_TRIES: Final = 4
SETTLE_PAUSE_SECONDS: Final = 0.1
#: How often a run is given back, after a random time below a ceiling that doubles, before the conflict counts as its
#: failure: without a bound, a job whose transaction can never commit would run for ever and burn no attempt.
MOST_RELEASES: Final = 8
LONGEST_RELEASE_SECONDS: Final = 60.0
#: The ceiling of the random time after which a message comes back whose store did not answer. It doubles with each
#: receive up to this, so that an outage of hours does not use up the receives that the lane allows.
LONGEST_PUT_BACK_SECONDS: Final = 900.0
#: A message ahead of its document waits this long for the document to catch up.
AHEAD_DELAY: Final = timedelta(minutes=1)
#: A type unknown here may be known to the version that is being deployed, so such a job keeps its attempts.
UNKNOWN_TYPE_POLICY: Final = RetryPolicy()


class Ending(StrEnum):
    """What became of a message."""

    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    DEAD = "dead"
    #: Other transactions stood in the way; the attempt was given back.
    RELEASED = "released"
    #: The lease was lost to another worker, so nothing was written.
    FENCED = "fenced"
    #: The claim was refused; the verdict says why.
    REFUSED = "refused"
    #: An operator moved a letter back to the lane; its job was redriven.
    REDRIVEN = "redriven"
    #: The invocation had no time left to run it.
    NOT_STARTED = "not started"
    #: The store did not answer.
    UNAVAILABLE = "unavailable"
    #: The message is not one of ours.
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a message, for the one log line about it. The message is acknowledged unless `put_back_until`."""

    ending: Ending
    job: Job | None = None
    verdict: Verdict | None = None
    error: str | None = None
    put_back_until: datetime | None = None
    #: What was raised, for its traceback.
    cause: BaseException | None = None
    #: From the claim to the outcome; 0 if nothing was settled.
    duration_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What every attempt of a worker shares."""

    store: JobStore
    job_types: JobTypes
    clock: Clock
    new_token: NewToken
    draw: Draw
    pause: Callable[[float], None]


class Attempt:
    """Claim, run and finish, in that order; `report` is there once it has ended.

    `finish` may come from the worker's thread and from the invocation's, when time is up: the first one counts.
    """

    def __init__(self, body: Reference | Letter, tools: Tools, *, deadline: datetime, receives: int = 1) -> None:
        """`deadline` is when the run must have ended for its batch to be answered in time.

        `receives` is how often the message has been received, this time included.
        """
        self._body = body
        self._tools = tools
        self._deadline = deadline
        self._receives = receives
        self._lock = threading.Lock()
        self._job: Job | None = None
        self.report: Report | None = None

    @property
    def reference(self) -> Reference:
        return reference_of(self._body)

    def has_ended(self) -> bool:
        """Another thread may end the attempt at any moment, unless the lock is held."""
        return self.report is not None

    def claim(self, *, remaining: timedelta) -> bool:
        """Take the job for as long as the invocation can last. False leaves the reason in `report`."""
        if self.has_ended():
            return False
        now = self._tools.clock()
        lease_end = now + remaining + CLOCK_SKEW_MARGIN
        token = self._tools.new_token()
        try:
            job = self._tools.store.claim(self.reference, token=token, now=now, lease_end=lease_end)
        except WriteRefusedError as refused:
            self.report = self._refused(judge(self.reference, refused.current), refused.current, now)
            return False
        with self._lock:
            if not self.has_ended():
                self._job = job
                return True
        # Time ran out while the claim was on its way: nobody will run the job, so it need not wait for its lease.
        with contextlib.suppress(WriteRefusedError):
            self._tools.store.release(job, due=now)
        return False

    def run(self) -> Outcome:
        """Call the handler. What it raises is for the caller to hand to `finish`."""
        job = self._claimed()
        if self.report is not None:
            raise JobTimeoutError("the batch ran out of time before this job could start")
        job_type = self._tools.job_types.get(job.type)
        if crashed := crash_outcome(job, job_type.retry):
            return crashed
        payload = job_type.parse(json.loads(job.payload))
        try:
            value = job_type(payload, self._context(job, job_type))
        except Exception:
            raise
        except BaseException as ended:
            # `SystemExit`, a cancelled coroutine: what would end the thread ends the attempt.
            raise MillraceError(f"the handler tried to end its process: {ended!r}") from ended
        return encode(value)

    def finish(self, outcome: Outcome) -> None:
        """Settle. Does nothing if the attempt has ended already. Raises `StoreUnavailableError`."""
        with self._lock:
            if self.report is None:
                self.report = self._settle(self._claimed(), outcome)

    def expire(self) -> None:
        """Time is up for the batch: end the attempt as failed, or put its message back if it has no claim yet."""
        if self._job is not None:
            self.finish(Failed(error_class=JobTimeoutError.__name__, message="the attempt took longer than a job may"))
            return
        with self._lock:
            if self.report is None:
                self.report = Report(ending=Ending.NOT_STARTED, put_back_until=self._tools.clock())

    def unavailable(self, error: Exception) -> None:
        """A write had no answer: leave the message until the lease, if there is one, is over. No-op if it has ended."""
        if self.report is not None:
            return
        now = self._tools.clock()
        lease_end = self._job.due if self._job else None
        ceiling_seconds = min(2.0 ** min(self._receives, 30), LONGEST_PUT_BACK_SECONDS)
        backoff = timedelta(seconds=1 + ceiling_seconds * self._tools.draw())
        self.report = Report(
            ending=Ending.UNAVAILABLE, job=self._job, error=str(error), put_back_until=lease_end or now + backoff
        )

    def _claimed(self) -> Job:
        if self._job is None:
            raise AssertionError("an attempt runs only after its claim")
        return self._job

    def _refused(self, verdict: Verdict, current: Job | None, now: datetime) -> Report:
        if isinstance(self._body, Letter) and letter_action(self.reference, current, now=now) is LetterAction.DEAD:
            return self._redrive(current, now)
        until = None if verdict.acknowledged else _back_at(verdict, current, now)
        return Report(ending=Ending.REFUSED, job=current, verdict=verdict, put_back_until=until)

    def _redrive(self, job: Job | None, now: datetime) -> Report:
        """A letter on the lane was moved there by somebody who wants its job to live."""
        if job is None:
            raise AssertionError("a letter is dead only by its document")
        try:
            job = self._tools.store.redrive(job, token=self._tools.new_token(), now=now, by="queue redrive")
        except WriteRefusedError as refused:
            return Report(ending=Ending.REFUSED, job=refused.current, verdict=Verdict.STALE)
        return Report(ending=Ending.REDRIVEN, job=job)

    def _context(self, job: Job, job_type: JobType) -> Run:
        return Run(
            job_id=job.id,
            tenant=job.tenant,
            attempt=job.attempt,
            max_attempts=job_type.retry.max_attempts,
            submitted_at=job.created_at,
            deadline=self._deadline,
            idempotency_key=job.id,
        )

    def _settle(self, job: Job, outcome: Outcome) -> Report:
        now = self._tools.clock()
        written = settlement(job, outcome, self._policy(job), now=now, draw=self._tools.draw())
        for attempt in range(SETTLE_TRIES):
            try:
                # The same settlement each time: a client token that comes again with other content is refused.
                self._tools.store.settle(job, written, now=now)
            except WriteRefusedError as refused:
                return self._fenced(job, refused.current, now)
            except EffectRefusedError as refused:
                return self._settle(job, Failed.because(refused))
            except (StoreUnavailableError, TransactionConflictError) as unsettled:
                trouble = unsettled
                self._tools.pause(SETTLE_PAUSE_SECONDS * 2**attempt * self._tools.draw())
            else:
                error = f"{written.error.error_class}: {written.error.message}" if written.error else None
                duration_seconds = (now - job.claimed_at).total_seconds() if job.claimed_at else 0.0
                return Report(
                    ending=Ending(written.state.value), job=job, error=error, duration_seconds=duration_seconds
                )
        if isinstance(trouble, StoreUnavailableError):
            raise trouble
        if job.releases >= MOST_RELEASES:
            return self._settle(job, Failed.because(trouble))
        return self._release(job, trouble)

    def _release(self, job: Job, conflict: TransactionConflictError) -> Report:
        now = self._tools.clock()
        ceiling_seconds = min(2.0**job.releases, LONGEST_RELEASE_SECONDS)
        try:
            self._tools.store.release(job, due=now + timedelta(seconds=ceiling_seconds * self._tools.draw()))
        except WriteRefusedError as refused:
            return self._fenced(job, refused.current, now)
        return Report(ending=Ending.RELEASED, job=job, error=str(conflict))

    def _fenced(self, job: Job, current: Job | None, now: datetime) -> Report:
        """Whoever took the job over may have had it from this very message, which stays until theirs is settled."""
        verdict = judge(self.reference, current)
        until = None if verdict.acknowledged else _back_at(verdict, current, now)
        return Report(ending=Ending.FENCED, job=job, verdict=verdict, put_back_until=until)

    def _policy(self, job: Job) -> RetryPolicy:
        try:
            return self._tools.job_types.get(job.type).retry
        except UnknownJobTypeError:
            return UNKNOWN_TYPE_POLICY


def _back_at(verdict: Verdict, current: Job | None, now: datetime) -> datetime:
    return current.due if current and current.due and verdict is not Verdict.AHEAD else now + AHEAD_DELAY


def encode(value: Any) -> Outcome:
    """What a handler returned, as an outcome. A result that cannot be stored kills the job with that reason."""
    done = value if isinstance(value, Done) else Done(result=value)
    # An iterator would be empty when the settle is tried again.
    writes = tuple(done.writes)
    if done.result is None:
        return Succeeded(writes=writes)
    try:
        result = json.dumps(done.result, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return _unstorable(f"a result must be JSON: {error}")
    if len(result) > LARGEST_RESULT_BYTES:
        return _unstorable(f"the result is {len(result)} bytes, and {LARGEST_RESULT_BYTES} is the most a job may keep")
    return Succeeded(result=result, writes=writes)


def _unstorable(message: str) -> Failed:
    return Failed(error_class="ResultError", message=message, death=DeathReason.RESULT_UNSTORABLE)
