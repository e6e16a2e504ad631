"""The life of one attempt at one job: claim, gates, handler call, settle. The gates are in `attempt_gates`."""

import contextlib
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.application.attempt_context import AttemptContext, AttemptHooks
from tidemill.application.attempt_gates import OUT_OF_TIME, Gates
from tidemill.application.attempt_report import Ending, Report
from tidemill.application.breaker_use import CURRENT_USE
from tidemill.application.checkpoints import checkpoints
from tidemill.application.handler_context import HandlerContext
from tidemill.application.handler_results import outcome_of_value
from tidemill.application.joint_calls import Called, Participant, SoleParticipant
from tidemill.application.new_run import new_run
from tidemill.application.run import observe_nothing
from tidemill.application.settle import Settler
from tidemill.application.steps import Steps
from tidemill.domain.claim_verdict import ClaimVerdict, judge, put_back_for, put_back_time
from tidemill.domain.dead_letters import DeadLetterAction, dead_letter_action
from tidemill.domain.error_groups import OUTAGE, as_failure, decisive
from tidemill.domain.error_text import text_of
from tidemill.domain.errors import (
    BatchCallError,
    BreakerOpenError,
    JobTimeoutError,
    LeaseLostError,
    StoreUnavailableError,
    StrayBesideError,
    TidemillError,
    TransactionConflictError,
    UnloadedJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.history import version_of
from tidemill.domain.job import Job
from tidemill.domain.job_message import DeadLetter, Reference, reference_of
from tidemill.domain.outcomes import Failed, Outcome, Parked
from tidemill.domain.return_values import WORK_NOT_DONE

#: The lease ends this much after the invocation, since clocks differ.
CLOCK_SKEW_MARGIN: Final = timedelta(seconds=2)


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
        self._gates = Gates(context, deadline=deadline, has_ended=self.has_ended, hooks=self._hooks)
        self._participant = participant or SoleParticipant()
        self._settler = Settler(self.reference, context, self._hooks.observer, settle=self._participant.settle)
        #: Held during a settle, so that one thread settles at a time.
        self._settling = threading.Lock()
        #: Held for each write of the fields below, and never during a call to AWS, so that `unavailable` does not wait.
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._report: Report | None = None
        #: Set before the settle of an expired attempt: from then on its handler must not start.
        self._expired = False
        #: Set while the handler is called.
        self._in_handler = False
        #: Set before the first call that others share: nothing says that its error or its time is that of this job.
        self._shared = False

    @property
    def reference(self) -> Reference:
        return reference_of(self._body)

    @property
    def deadline(self) -> datetime:
        """When the run counts as failed. A gate moves it when the job type allows less time than the lane."""
        return self._gates.deadline

    @property
    def report(self) -> Report | None:
        """What became of the message; None until the attempt has ended."""
        return self._report

    def has_ended(self) -> bool:
        """Another thread may end the attempt at any moment, unless `_lock` is held."""
        return self._report is not None

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
        self._gates.read_type(job)
        with self._lock:
            if not self.has_ended():
                self._job = job
                return True
        # Time ran out during the claim. The job will not run here, so it need not wait for the end of its lease. A
        # release would count a conflict, and its handler has not begun.
        with contextlib.suppress(WriteRefusedError):
            self._context.store.unclaim(self.reference, token=token, now=now)
            self._hooks.observer.ended(self.reference, Report(ending=Ending.RELEASED, job=job))
        return False

    def run(self) -> Outcome:
        """Pass the gates, then call the handler. The caller hands an exception to `finish`."""
        job = self._claimed()
        try:
            return self._pass_gates_then_run(job)
        except OUTAGE:
            if held := self._gates.held_for_outage(job):
                return held
            raise
        except Exception:
            raise
        except BaseException as exit_:
            # Of code of the job type outside of its handler, such as its rules for errors.
            raise as_failure(exit_) from exit_

    def _pass_gates_then_run(self, job: Job) -> Outcome:
        """The gates in this order: the first that returns an outcome ends the attempt without a run."""
        gates = self._gates
        try:
            for gate in (
                gates.on_time,
                gates.allowed_to_run,
                gates.not_paused,
                gates.after_undo,
                gates.type_known,
                gates.alone_if_suspect,
                gates.time_of_type,
                gates.payload_fits,
                gates.downstreams_work,
                gates.within_limits,
                gates.without_stray,
                gates.may_call_downstreams,
            ):
                if outcome := gate(job):
                    return outcome
            return self._outcome_of_handler(job)
        except UnloadedJobTypeError as unloaded:
            # Of a job that was to follow this one.
            return gates.parked_for_type(job, unloaded)
        except BreakerOpenError as error:
            return gates.parked_for_breaker(job, error.name)
        except StrayBesideError:
            return gates.held_for_stray()
        except (BatchCallError, JobTimeoutError) as failed:
            if not self._shared:
                raise
            return gates.held_apart(failed)

    def finish(self, outcome: Outcome) -> None:
        """Settle, unless the attempt has ended, and release the slot. Raises `StoreUnavailableError`.

        In this order: the next run of the limit key finds what this one has written.
        """
        self._participant.leave_call()
        self._gates.ended_with(outcome)
        try:
            self._settle(outcome)
        finally:
            self._participant.leave_settle()
            self.release_slot()

    def _settle(self, outcome: Outcome) -> None:
        with self._settling:
            if self.has_ended():
                self._settler.delete_unused_payloads(self._claimed(), outcome)
            else:
                with self._hooks.settle_scope(self._claimed()):
                    report = self._settler.settle(self._claimed(), outcome, self._gates.policy)
                with self._lock:
                    self._report = self._report or report
                if report.ending is Ending.PARKED and isinstance(outcome, Parked):
                    self._context.releaser.look_again(replace(self._claimed(), wait=outcome.wait))

    def expire(self) -> None:
        """Time is up: end the attempt as failed, or put its message back if it has no claim yet."""
        with self._lock:
            self._expired = True
            if self._job is None:
                self._end_locked(Report(ending=Ending.NOT_STARTED, put_back_until=self._context.clock()))
                return
        # The handler may still run, in its thread. Its slot is released there.
        timed_out = self._timed_out(JobTimeoutError(self._too_slow()))
        self._gates.ended_with(timed_out)
        self._settle(timed_out)

    def _timed_out(self, error: JobTimeoutError) -> Outcome:
        """Failed, unless a downstream whose breaker is open took too long."""
        if self._in_handler and (name := self._gates.record_call_result(error)):
            with contextlib.suppress(StoreUnavailableError):
                return self._gates.parked_for_breaker(self._claimed(), name)
        return self._gates.held_apart(error) if self._shared else Failed.because(error)

    def unavailable(self, error: Exception) -> None:
        """The store did not respond: put the message back until the lease ends. No-op if the attempt has ended.

        It does not wait for a settle that is under way: no time is left for that.
        """
        if self.has_ended():
            return
        now = self._context.clock()
        lease_end = self._job.due if self._job else None
        backoff = put_back_for(self._receives, draw=self._context.draw())
        until = lease_end or now + backoff
        # The error of a dependency needs no traceback. Any other is a bug.
        cause = None if isinstance(error, TidemillError) else error
        text = text_of(error)
        self._end(Report(ending=Ending.UNAVAILABLE, job=self._job, error=text, cause=cause, put_back_until=until))

    def release_slot(self) -> None:
        """Also for a stray: its process ends now, so the slot need not wait for the end of the lease."""
        if job := self._job:
            self._gates.release_slot(job, lambda line, change: self._hooks.observer.lowered(job, line, change))

    def _end(self, report: Report) -> None:
        """End an attempt that settles nothing, unless it has ended."""
        with self._lock:
            self._end_locked(report)

    def _end_locked(self, report: Report) -> None:
        if self._report is None:
            # Before the invocation can see that the attempt has ended, since the process then stops.
            self._hooks.observer.ended(self.reference, report)
            self._report = report

    def _claimed(self) -> Job:
        if self._job is None:
            raise AssertionError("an attempt runs only after its claim")
        return self._job

    def _outcome_of_handler(self, job: Job) -> Outcome:
        with self._hooks.handler_scope(job) as context:
            store, clock = self._context.store, self._context.clock
            version = version_of(self._hooks.worker)
            steps = Steps(job, store, clock, version=version, under_way=self._require_under_way, writes=self._written)
            try:
                value = self._call_handler(job, context, steps)
            except Exception:
                steps.require_sound()
                raise
            if changed := steps.of_another_version(value):
                return self._gates.left_to_another_version(job, changed)
            steps.end(value)
            # The jobs that follow belong to the trace of this run.
            return outcome_of_value(value, replace(job, trace=context.trace), self._context.submit)

    def _call_handler(self, job: Job, context: HandlerContext, steps: Steps) -> Any:
        """What the handler returns."""
        job_type, measured = self._gates.known_type(), self._gates.measured
        run = new_run(
            job,
            job_type,
            self._context,
            deadline=self._gates.wall_deadline,
            handler_context=context,
            save=checkpoints(job, self._context.store, self._context.clock, under_way=self._require_under_way),
            take_step=steps.take,
            observe=measured.observed if measured else observe_nothing,
        )

        def share() -> None:
            self._shared = True

        def leave() -> None:
            self._in_handler = False

        if measured:
            measured.begin()
        token = CURRENT_USE.set(self._gates.breaker_use)
        try:
            payload, counts_in = self._gates.payload, self._gates.share_call
            called = Called(job, job_type, payload, run, self._begin_handler, share, leave, counts_in)
            value = self._participant.call(called)
        except Exception as error:
            of_the_call = error.error if isinstance(error, BatchCallError) else error
            if self._in_handler and (name := self._gates.record_call_result(of_the_call)):
                raise BreakerOpenError(name) from error
            if (meant := decisive(error)) is not error and isinstance(meant, (BreakerOpenError, *OUTAGE)):
                raise meant from None
            raise
        finally:
            if measured:
                measured.end()
            CURRENT_USE.reset(token)
            self._in_handler = False
        if not isinstance(value, WORK_NOT_DONE):
            self._gates.record_call_result(None)
        return value

    def _begin_handler(self) -> None:
        """Raises `JobTimeoutError` if time is up: another thread may be settling the attempt as failed.

        Raises `StrayBesideError` if another handler of the process is beyond its time since the gates.
        """
        self._gates.without_stray(self._claimed())
        with self._lock:
            if self._expired or self._report or self._context.steady() >= self.deadline:
                raise JobTimeoutError(OUT_OF_TIME)
            self._in_handler = True

    def _require_under_way(self) -> None:
        """Raises `JobTimeoutError` or `LeaseLostError` for a handler, or a thread of it, that goes on after its run."""
        if self._report is None:
            return
        if self._expired:
            raise JobTimeoutError(f"{self._too_slow()}, and has been settled as failed")
        ended = f"this run has ended as {self._report.ending}, and a thread of its handler goes on"
        raise LeaseLostError(f"{ended}: wait for the threads of a handler before it returns")

    def _too_slow(self) -> str:
        return f"it took longer than {self._gates.time_allowed(self._claimed(), self._lane_timeout)}"

    def _written(self, job: Job) -> None:
        with self._lock:
            self._job = job

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
