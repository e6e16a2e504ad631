"""Run: one attempt at one job, from a message to a settled document."""

import contextlib
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.application.attempt_report import Ending, Report
from tidemill.application.handler_results import checkpoint_text, outcome_of_value
from tidemill.application.job_types import JobType, Run
from tidemill.application.ports import Checkpoint, LimitSlot
from tidemill.application.settle import Settler, Tools, back_at
from tidemill.domain.claim_verdict import Verdict, judge
from tidemill.domain.dead_letters import DeadLetterAction, dead_letter_action
from tidemill.domain.errors import (
    CancelRequestedError,
    InvalidPayloadError,
    JobTimeoutError,
    LeaseLostError,
    StoreUnavailableError,
    TidemillError,
    UnknownJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.job import DeadLetter, DeathReason, Job, Reference, reference_of
from tidemill.domain.outcomes import Failed, Held, Outcome, outcome_before_run

#: Lease beyond the invocation's end, for clocks that differ.
CLOCK_SKEW_MARGIN: Final = timedelta(seconds=2)
#: The ceiling of the random time after which a message comes back whose store did not answer. It doubles with each
#: receive up to this, so that an outage of hours does not use up the receives that the lane allows.
LONGEST_PUT_BACK_SECONDS: Final = 900.0
#: The ceiling of the random time after which a job is tried again whose payload or limits could not be read.
LONGEST_OUTAGE_HOLD_SECONDS: Final = 60.0
#: After so many holds in a row it counts as the job's failure: what always fails so is no outage.
MOST_HOLDS_OF_AN_OUTAGE: Final = 20
#: A job whose type this worker does not know, or whose payload its model refuses, was checked by submit: one of the two
#: is of another version, as in every deployment. It comes back after a random time below a ceiling that doubles with
#: each hold up to this. After so many, an hour and a half on average, it dies: no deployment takes that long.
LONGEST_VERSION_HOLD_SECONDS: Final = 900.0
MOST_HOLDS_OF_A_VERSION: Final = 20
#: A job whose last run may have killed its worker runs alone, so that it cannot burn the attempts of its batch-mates
#: again and again. Busy workers may never have the time for that, so after so many holds in a row it runs in company.
MOST_HOLDS_OF_A_SUSPECT: Final = 5
LONGEST_SUSPECT_HOLD_SECONDS: Final = 3.0


class Attempt:
    """Claim, run and finish, in that order; `report` is there once it has ended.

    `finish` may come from the worker's thread and from the invocation's, when time is up: the first one counts.
    """

    def __init__(
        self,
        body: Reference | DeadLetter,
        tools: Tools,
        *,
        deadline: datetime,
        receives: int = 1,
        lane_timeout: timedelta | None = None,
        alone: Callable[[datetime], datetime | None] | None = None,
        hastened: Callable[[], None] | None = None,
    ) -> None:
        """`deadline` is when the run must have ended for its batch to be answered in time.

        `receives` is how often the message has been received, this time included. `lane_timeout` is what the deadline
        comes from, for whoever reads why a run was ended. `alone` waits until nothing else runs in this process, no
        longer than until the deadline given, and returns the deadline from there on, or None if that cannot be had in
        time. `hastened` is called when the deadline has come nearer.
        """
        self._body = body
        self._tools = tools
        self._deadline = deadline
        self._receives = receives
        self._lane_timeout = lane_timeout
        self._type_timeout: timedelta | None = None
        self._alone = alone
        self._hastened = hastened
        self._settler = Settler(self.reference, tools)
        self._lock = threading.Lock()
        self._job: Job | None = None
        self.report: Report | None = None

    @property
    def reference(self) -> Reference:
        return reference_of(self._body)

    @property
    def deadline(self) -> datetime:
        """When the run counts as failed; earlier than the batch needs once the job's type is known to be quicker."""
        return self._deadline

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
        except StoreUnavailableError:
            # It may have been applied, and its attempt would be used up, and its lease run out, without a run.
            with contextlib.suppress(StoreUnavailableError, WriteRefusedError):
                self._tools.store.unclaim(self.reference, token=token, now=now)
            raise
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
        now = self._tools.clock()
        if over := outcome_before_run(job, self._tools.policy(job), now=now):
            return over
        try:
            job_type = self._tools.job_types.get(job.type)
        except UnknownJobTypeError as unknown:
            return self._left_to_another_version(job, unknown)
        if job.suspect and job.holds < MOST_HOLDS_OF_A_SUSPECT and self._alone:
            if (deadline := self._alone(self._deadline)) is None:
                return self._held_below(LONGEST_SUSPECT_HOLD_SECONDS)
            self._deadline = deadline
        self._type_timeout = job_type.timeout
        if job_type.timeout:
            self._deadline = min(self._deadline, self._tools.clock() + job_type.timeout)
            if self._hastened:
                self._hastened()
        try:
            return self._run(job_type, job)
        except StoreUnavailableError:
            if job.holds >= MOST_HOLDS_OF_AN_OUTAGE:
                raise
            # Nobody's fault, and no attempt of the job's, whether its payload, its limits or its checkpoint met it.
            return self._held_below(LONGEST_OUTAGE_HOLD_SECONDS)

    def finish(self, outcome: Outcome) -> None:
        """Settle. Too late if the attempt has ended already. Raises `StoreUnavailableError`."""
        with self._lock:
            if self.report is None:
                self.report = self._settler.settle(self._claimed(), outcome)
            else:
                self._settler.clear_away(self._claimed(), outcome)

    def expire(self) -> None:
        """Time is up: end the attempt as failed, or put its message back if it has no claim yet."""
        if self._job is not None:
            self.finish(Failed(error_class=JobTimeoutError.__name__, message=f"it took longer than {self._allowed()}"))
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

    def _allowed(self) -> str:
        """How long a run may take, and who says so."""
        lane, own = self._lane_timeout, self._type_timeout
        if own and (lane is None or own < lane):
            return f"the {own.total_seconds():g} s that `timeout_seconds` of {self._claimed().type} allows"
        if lane:
            return f"the {lane.total_seconds():g} s that lane {self._claimed().lane} allows"
        return "its worker had time"

    def _held_below(self, ceiling_seconds: float) -> Held:
        return Held(until=self._tools.clock() + timedelta(seconds=1 + ceiling_seconds * self._tools.draw()))

    def _left_to_another_version(self, job: Job, refusal: TidemillError) -> Outcome:
        if job.holds >= MOST_HOLDS_OF_A_VERSION:
            return replace(Failed.because(refusal), death=DeathReason.PERMANENT)
        ceiling_seconds = min(2.0 ** (job.holds + 1), LONGEST_VERSION_HOLD_SECONDS)
        return replace(self._held_below(ceiling_seconds), error=f"{type(refusal).__name__}: {refusal}")

    def _run(self, job_type: JobType, job: Job) -> Outcome:
        stored = json.loads(self._tools.payloads.load(job))
        try:
            payload = job_type.parse(stored)
        except InvalidPayloadError as refusal:
            return self._left_to_another_version(job, refusal)
        return self._within_limits(job_type, payload, job)

    def _within_limits(self, job_type: JobType, payload: Any, job: Job) -> Outcome:
        now = self._tools.clock()
        slot = _limit_slot(job_type, payload, job, now)
        if slot and (wait_until := self._tools.limits.acquire(slot, now=now)):
            return Held(until=wait_until)
        try:
            if self.has_ended():
                # Reading what it needs took too long: it has been settled, and may be running elsewhere.
                raise JobTimeoutError("time was up before this run could start")
            return self._call(job_type, payload, job)
        finally:
            if slot:
                self._release_slot(slot)

    def _call(self, job_type: JobType, payload: Any, job: Job) -> Outcome:
        try:
            value = job_type(payload, self._context(job, job_type))
        except Exception:
            raise
        except BaseException as ended:
            # `SystemExit`, a cancelled coroutine: what would end the thread ends the attempt.
            raise TidemillError(f"the handler tried to end its process: {ended!r}") from ended
        return outcome_of_value(value, job, self._tools.submit)

    def _release_slot(self, slot: LimitSlot) -> None:
        """What cannot be given back now is given back by its own end."""
        with contextlib.suppress(StoreUnavailableError):
            self._tools.limits.release(slot)

    def _context(self, job: Job, job_type: JobType) -> Run:
        return Run(
            job_id=job.id,
            tenant=job.tenant,
            attempt=job.attempt,
            max_attempts=job_type.retry.max_attempts,
            submitted_at=job.created_at,
            deadline=self._deadline,
            idempotency_key=job.id,
            group=job.group,
            hops=job.hops,
            resumed_from=None if job.checkpoint is None else json.loads(job.checkpoint),
            save=self._save,
        )

    def _save(self, state: Any, done: int | None, total: int | None) -> None:
        """`Run.checkpoint`."""
        saved = Checkpoint(state=None if state is None else checkpoint_text(state), done=done, total=total)
        if self.has_ended():
            raise JobTimeoutError(f"it took longer than {self._allowed()}, and has been settled as failed")
        try:
            asked_to_end = self._tools.store.checkpoint(self._claimed(), saved, now=self._tools.clock())
        except WriteRefusedError as refused:
            raise LeaseLostError("the job is no longer this run's") from refused
        if asked_to_end:
            raise CancelRequestedError("somebody asked for this job to end")

    def _refused(self, verdict: Verdict, current: Job | None, now: datetime) -> Report:
        if (
            isinstance(self._body, DeadLetter)
            and dead_letter_action(self.reference, current, now=now) is DeadLetterAction.DEAD
        ):
            return self._redrive(current, now)
        until = None if verdict.acknowledged else back_at(verdict, current, now)
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


def _limit_slot(job_type: JobType, payload: Any, job: Job, now: datetime) -> LimitSlot | None:
    if job_type.limit is None:
        return None
    key = job_type.limit_key(payload) if job_type.limit_key else ""
    # A payload is what its tenant says: by a key of another's it must not take the other's slots.
    whose = [] if job_type.limit_spans_tenants else [job.tenant]
    return LimitSlot(
        limit_key=json.dumps([job.type, key, *whose]),
        limit=job_type.limit,
        token=job.owner or "",
        until=job.due or now,
        holds=job.holds,
    )
