"""The life of one attempt at one job: claim, gates, handler call, settle. The gates are those of the features."""

import contextlib
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.application.attempt.attempt_context import AttemptContext, AttemptHooks
from tidemill.application.attempt.attempt_holds import held_for_outage
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.gate import Gate
from tidemill.application.attempt.handler_context import HandlerContext
from tidemill.application.attempt.handler_results import outcome_of_value
from tidemill.application.attempt.new_run import new_run
from tidemill.application.attempt.participant import Called, Participant, SoleParticipant
from tidemill.application.attempt.settle import Settler
from tidemill.domain.attempt.error_groups import OUTAGE, as_failure, decisive
from tidemill.domain.attempt.outcomes import Failed, Outcome, Parked, outcome_before_run
from tidemill.domain.dispatch.claim_verdict import ClaimVerdict, judge, put_back_for, put_back_time
from tidemill.domain.dispatch.dead_letters import DeadLetterAction, dead_letter_action
from tidemill.domain.dispatch.job_message import DeadLetter, Reference, reference_of
from tidemill.domain.error_text import text_of
from tidemill.domain.errors import (
    JobTimeoutError,
    LeaseLostError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace

#: The lease ends this much after the invocation, since clocks differ.
CLOCK_SKEW_MARGIN: Final = timedelta(seconds=2)
#: The error of an attempt whose handler has not started.
OUT_OF_TIME: Final = "the time of the attempt ran out before its handler could start"


class Attempt:
    """Claim, run and finish, in that order. `report` is set once the attempt has ended.

    The thread of the message calls these. The thread of the invocation may call `expire` and `unavailable` at any time.
    The first report counts: each later one is only observed, even if its settle is the one that was written. The
    message is then put back, and the next claim from it is refused by the document.
    """

    def __init__(
        self,
        body: Reference | DeadLetter,
        context: AttemptContext,
        *,
        deadline: datetime,
        receives: int = 1,
        lane_timeout: timedelta | None = None,
        hooks: AttemptHooks | None = None,
        participant: Participant | None = None,
    ) -> None:
        """`body` is what the message holds, and `receives` how often the message was received, this time included.

        A run that has not ended by `deadline`, a time of `AttemptContext.steady`, counts as failed. `lane_timeout` is
        the time that the deadline comes from, for the error message.
        """
        self._body = body
        self._context = context
        self._receives = receives
        self._lane_timeout = lane_timeout
        self._hooks = hooks or AttemptHooks()
        self._deadline = deadline
        self._participant = participant or SoleParticipant()
        self._settler = Settler(self.reference, context, self._hooks.observer, settle=self._participant.settle)
        #: Held during a settle, so that one thread settles at a time.
        self._settling = threading.Lock()
        #: Held for each write of the fields below, and never during a call to AWS, so that `unavailable` does not wait.
        self._lock = threading.Lock()
        self._run: ClaimedRun | None = None
        #: The gates of the run, in their order. None before the claim.
        self._gates: Sequence[Gate] = ()
        self._report: Report | None = None
        #: Set before the settle of an expired attempt: from then on its handler must not start.
        self._expired = False
        #: Set while the handler is called.
        self._in_handler = False

    @property
    def reference(self) -> Reference:
        return reference_of(self._body)

    @property
    def deadline(self) -> datetime:
        """When the run counts as failed. A gate moves it when the job type allows less time than the lane."""
        return self._run.deadline if self._run else self._deadline

    @property
    def report(self) -> Report | None:
        """What became of the message; None until the attempt has ended."""
        return self._report

    def has_ended(self) -> bool:
        """Another thread may end the attempt at any moment, unless `_lock` is held."""
        return self._report is not None

    @property
    def in_handler(self) -> bool:
        """Whether the handler is being called."""
        return self._in_handler

    def is_stray(self) -> bool:
        """Whether the handler still runs although its attempt has ended. Nothing can stop a thread."""
        return self._in_handler and (self._expired or self.has_ended())

    def claim(self, *, remaining: timedelta) -> bool:
        """Take the job for as long as the invocation can last. False leaves the reason in `report`."""
        if self.has_ended():
            return False
        self._settler.begin()
        now = self._context.clock()
        lease_end = now + remaining + CLOCK_SKEW_MARGIN
        token = self._context.new_token()
        try:
            job = self._context.writes.claim(
                self.reference, token=token, now=now, lease_end=lease_end, worker=self._hooks.worker
            )
        except WriteRefusedError as refused:
            self._end(self._claim_refused(refused.current, now))
            return False
        except (StoreUnavailableError, TransactionConflictError):
            # The claim may have been applied, also if only its repeat met a transaction. Take it back, or it uses up an
            # attempt and holds a lease without a run.
            with contextlib.suppress(StoreUnavailableError, TransactionConflictError, WriteRefusedError):
                self._context.store.unclaim(self.reference, token=token, now=now)
            raise
        self._hooks.observer.claimed(job)
        if self._context.foreground:
            self._context.foreground.claimed(job)
        run = ClaimedRun(job, self._context, self._hooks, deadline=self._deadline, attempt=self)
        gates = self._context.gates(run)
        with self._lock:
            if not self.has_ended():
                self._run, self._gates = run, gates
                return True
        # Time ran out during the claim. The job will not run here, so it need not wait for the end of its lease. A
        # release would count a conflict, and its handler has not begun.
        with contextlib.suppress(WriteRefusedError):
            self._context.store.unclaim(self.reference, token=token, now=now)
            self._hooks.observer.ended(self.reference, Report(ending=Ending.RELEASED, job=job))
        return False

    def run(self) -> Outcome:
        """Pass the gates, then call the handler. The caller hands an exception to `finish`."""
        try:
            return self._passed_and_called()
        except OUTAGE:
            if held := held_for_outage(self._claimed()):
                return held
            raise
        except Exception:
            raise
        except BaseException as exit_:
            # Code of the job type outside of its handler raised it, such as its rules for errors.
            raise as_failure(exit_) from exit_

    def _passed_and_called(self) -> Outcome:
        """The first gate that returns an outcome ends the attempt without a run."""
        run = self._claimed()
        if self.has_ended():
            # The job may be running elsewhere already.
            raise JobTimeoutError(OUT_OF_TIME)
        if outcome := outcome_before_run(run.job, run.policy, now=self._context.clock()):
            return outcome
        try:
            for gate in self._gates:
                if outcome := gate.enter():
                    return outcome
            return self._outcome_of_handler(run)
        except Exception as error:
            if outcome := self._instead_of(error):
                return outcome
            raise

    def _outcome_of_handler(self, run: ClaimedRun) -> Outcome:
        job = run.job
        with self._hooks.handler_scope(job) as context:
            value = self._call_handler(run, context)
            for gate in reversed(self._gates):
                if outcome := gate.returned(value):
                    return outcome
            # The jobs that follow belong to the trace of this run.
            return outcome_of_value(value, replace(job, trace=context.trace), self._context.submit)

    def _call_handler(self, run: ClaimedRun, context: HandlerContext) -> Any:
        """What the handler returns."""
        called = Called(
            run.job,
            run.job_type,
            run.payload,
            new_run(run, context),
            begin=self._begin_handler,
            leave=self._leave_handler,
            gates=self._gates,
        )
        try:
            with contextlib.ExitStack() as around:
                for gate in self._gates:
                    around.enter_context(gate.around_call())
                return self._participant.call(called)
        except Exception as error:
            if (meant := decisive(error)) is not error and isinstance(meant, OUTAGE):
                raise meant from None
            raise
        finally:
            self._leave_handler()

    def _begin_handler(self) -> None:
        """Raises `JobTimeoutError` if time is up: another thread may be settling the attempt as failed.

        A gate may raise an error, too: the process is not as it was when the job entered it.
        """
        for gate in self._gates:
            gate.begin()
        with self._lock:
            if self._expired or self._report or self._context.steady() >= self.deadline:
                raise JobTimeoutError(OUT_OF_TIME)
            self._in_handler = True

    def _leave_handler(self) -> None:
        self._in_handler = False

    def _instead_of(self, error: Exception) -> Outcome | None:
        """The outcome of the gate whose feature has raised the error; None if the job has failed."""
        return next((outcome for gate in self._gates if (outcome := gate.instead_of(error))), None)

    def finish(self, outcome: Outcome) -> None:
        """Settle, unless the attempt has ended, and release the slot. Raises `StoreUnavailableError`.

        In this order: the next run of the limit key finds what this one has written.
        """
        self._participant.leave_call()
        for gate in self._gates:
            gate.ended(outcome)
        try:
            self._settle(outcome)
        finally:
            self._participant.leave_settle()
            self.release_slot()

    def _settle(self, outcome: Outcome) -> None:
        with self._settling:
            if self.has_ended():
                self._settler.delete_unused_payloads(self._claimed().job, outcome)
            else:
                run = self._claimed()
                with self._hooks.settle_scope(run.job):
                    report = self._settler.settle(run.job, outcome, run.policy)
                with self._lock:
                    self._report = self._report or report
                if report.ending is Ending.PARKED and isinstance(outcome, Parked):
                    self._context.releaser.look_again(replace(run.job, wait=outcome.wait))

    def expire(self) -> None:
        """Time is up: end the attempt as failed, or put its message back if it has no claim yet."""
        with self._lock:
            self._expired = True
            if self._run is None:
                self._end_locked(Report(ending=Ending.NOT_STARTED, put_back_until=self._context.clock()))
                return
        # The handler may still run, in its thread. Its slot is released there.
        error = JobTimeoutError(self._too_slow())
        timed_out = self._instead_of(error) or Failed.because(error)
        for gate in self._gates:
            gate.ended(timed_out)
        self._settle(timed_out)

    def unavailable(self, error: Exception) -> None:
        """The store did not respond: put the message back until the lease ends. No-op if the attempt has ended.

        It does not wait for a settle that is under way: no time is left for that.
        """
        if self.has_ended():
            return
        now = self._context.clock()
        job = self._run.job if self._run else None
        lease_end = job.due if job else None
        backoff = put_back_for(self._receives, draw=self._context.draw())
        until = lease_end or now + backoff
        # The error of a dependency needs no traceback. Any other is a bug.
        cause = None if isinstance(error, TidemillError) else error
        text = text_of(error)
        self._end(Report(ending=Ending.UNAVAILABLE, job=job, error=text, cause=cause, put_back_until=until))

    def release_slot(self) -> None:
        """Leave the gates. Also for a stray: its process ends now, so its slot need not wait for the lease to end."""
        for gate in reversed(self._gates):
            gate.leave()

    def _end(self, report: Report) -> None:
        """End an attempt that settles nothing, unless it has ended."""
        with self._lock:
            self._end_locked(report)

    def _end_locked(self, report: Report) -> None:
        if self._report is None:
            # Before the invocation can see that the attempt has ended, since the process then stops.
            self._hooks.observer.ended(self.reference, report)
            self._report = report

    def _claimed(self) -> ClaimedRun:
        if self._run is None:
            raise AssertionError("an attempt runs only after its claim")
        return self._run

    def require_under_way(self) -> None:
        """Raises `JobTimeoutError` or `LeaseLostError` for a handler, or a thread of it, that goes on after its run."""
        if self._report is None:
            return
        if self._expired:
            raise JobTimeoutError(f"{self._too_slow()}, and has been settled as failed")
        ended = f"this run has ended as {self._report.ending}, and a thread of its handler goes on"
        raise LeaseLostError(f"{ended}: wait for the threads of a handler before it returns")

    def _too_slow(self) -> str:
        return f"it took longer than {self._claimed().time_allowed(self._lane_timeout)}"

    def written(self, job: Job) -> None:
        """The document may be as `job` from now on."""
        with self._lock:
            self._claimed().job = job

    def _claim_refused(self, current: Job | None, now: datetime) -> Report:
        if (
            current
            and isinstance(self._body, DeadLetter)
            and dead_letter_action(self.reference, current, now=now) is DeadLetterAction.DEAD
        ):
            return self._redrive(current, now)
        verdict = judge(self.reference, current)
        until = None if verdict.acknowledged else put_back_time(verdict, current, now)
        return Report(ending=Ending.REFUSED, job=current, verdict=verdict, put_back_until=until)

    def _redrive(self, job: Job, now: datetime) -> Report:
        """An operator moves a dead-letter message back to the lane to have its job redriven."""
        try:
            job = self._context.store.redrive(job, token=self._context.new_token(), now=now, by="queue redrive")
        except WriteRefusedError as refused:
            return Report(ending=Ending.REFUSED, job=refused.current, verdict=ClaimVerdict.STALE)
        return Report(ending=Ending.REDRIVEN, job=job)
