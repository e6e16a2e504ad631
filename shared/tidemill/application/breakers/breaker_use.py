"""The breakers that one run uses: those that its type depends on, and those that its handler enters by itself."""

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from datetime import datetime
from typing import Any

from tidemill.application.breakers.breakers import Breakers
from tidemill.domain.attempt.error_groups import decisive
from tidemill.domain.attempt.return_values import WORK_NOT_DONE
from tidemill.domain.breakers.breaker import BreakerPolicy
from tidemill.domain.breakers.downstream_errors import Classify, ErrorClass, classify
from tidemill.domain.error_text import class_name, leaves
from tidemill.domain.errors import BreakerOpenError, JobTimeoutError
from tidemill.domain.job import Job
from tidemill.domain.waiting.waiting import Cause, Line


class SharedCall:
    """One call of a handler, of one job or several. Each breaker counts it once."""

    def __init__(self) -> None:
        #: Held while a job reports the call, so that the others see what became of the breaker.
        self.lock = threading.Lock()
        #: The breakers that have counted it.
        self.counted: set[str] = set()
        #: What the handler returned for each of several jobs, or an exception. Empty before its end.
        self.outcomes: Sequence[Any] = ()

    def error(self, own: BaseException | None, rules: Classify | None) -> BaseException | None:
        """The error of the call: None if the downstream has served one of its jobs; else one that counts, if any does.

        `own` is that of the job that reports. It says all of a call that this job has alone, or that has not ended.
        """

        def rank(outcome: Any) -> int:
            error_class = classify(outcome, rules) if isinstance(outcome, Exception) else ErrorClass.PERMANENT
            return 2 if error_class is ErrorClass.DEFECT else int(error_class.counts)

        best = min((each for each in self.outcomes if not isinstance(each, WORK_NOT_DONE)), key=rank, default=own)
        return best if isinstance(best, BaseException) else None


class BreakerUse:
    """Counts the calls of one run for the breakers that it uses."""

    def __init__(
        self,
        breakers: Breakers,
        job: Job,
        *,
        depends_on: Sequence[BreakerPolicy],
        rules: Classify | None,
        deadline: Callable[[], datetime],
    ) -> None:
        """`deadline` gives the time at which the run must end, which may come nearer until the handler starts."""
        self._breakers = breakers
        self._job = job
        self._depends_on = depends_on
        self._rules = rules
        self._deadline = deadline
        #: Those that the run has asked, whether they admitted it or not.
        self._asked: set[str] = set()
        #: Those that a call may use, by name, until its result is known.
        self._open_calls: dict[str, BreakerPolicy] = {}
        #: Those whose block the handler has left, so its end says nothing more about them.
        self._reported: dict[str, BreakerPolicy] = {}
        #: The call of the handler.
        self._handler_call = SharedCall()
        #: Those that worked, while the store did not respond.
        self._unsaved: set[str] = set()
        #: Those that were open when they admitted the run: it is their probe.
        self._probed: set[str] = set()
        #: Numbers the calls of the run, so that each failure counts.
        self._calls = 0
        self._over = False

    def admit(self, policy: BreakerPolicy) -> None:
        """Before a call. Raises `BreakerOpenError`, also for a handler that goes on after the end of its run."""
        self._asked.add(policy.name)
        if self._over:
            raise BreakerOpenError(policy.name, f"the run has ended: {policy.name} admits no more of its calls")
        if policy.name in self._reported:
            self._breakers.hear_others(policy, until=self._deadline())
        if not self._breakers.admits(policy, self._job):
            raise BreakerOpenError(policy.name)
        self._open_calls[policy.name] = policy
        if self._breakers.blocks(policy.name):
            self._probed.add(policy.name)

    def require_depends_on(self) -> None:
        """Before the run asks for what else it needs. Raises `BreakerOpenError` for the first one that is open.

        It changes nothing: no breaker may lose its probe to a job that another one refuses, or that finds no slot.
        """
        for policy in self._depends_on:
            if not self._breakers.would_admit(policy):
                self._asked.add(policy.name)
                raise BreakerOpenError(policy.name)

    def admit_depends_on(self) -> None:
        """Before the handler. Raises `BreakerOpenError` for one that has opened, or that another job probes."""
        for policy in self._depends_on:
            self.admit(policy)

    def leave(self, policy: BreakerPolicy, error: BaseException | None) -> None:
        """The block of a handler has ended. After the end of the run, its result comes too late."""
        if not self._over:
            self._reported[policy.name] = policy
            self._report(policy, error, SharedCall())

    def share(self, call: SharedCall) -> None:
        """The handler is called with other jobs, too."""
        self._handler_call = call

    def handler_ended(self, error: BaseException | None) -> str | None:
        """Record its result. The name of an open breaker that the error was counted against, or would have been."""
        timed_out = isinstance(error, JobTimeoutError)
        # A run whose time is over may still be inside of a block.
        hanging = [policy for policy in self._open_calls.values() if timed_out]
        used = {policy.name: policy for policy in (*self._depends_on, *hanging)}
        for policy in used.values():
            if timed_out or policy.name not in self._reported:
                call = self._handler_call
                # One thread ends all runs that are out of time, and waits for none of them.
                with nullcontext() if timed_out else call.lock:
                    self._report(policy, call.error(error, self._rules), call)
        self._over = True
        if error is None:
            return None
        if isinstance(leaf := decisive(error), BreakerOpenError):
            return leaf.name
        if not classify(error, self._rules).counts:
            return None
        called = {**used, **self._reported}
        for policy in called.values():
            if not timed_out:
                self._breakers.hear_others(policy, until=self._deadline())
        return next((name for name in sorted(called) if self._breakers.blocks(name)), None)

    def give_up(self) -> None:
        """The run is over. A call without a result, or an elected job that did not call, leaves the probe to another.

        Such a job was paused, for example. One that the breaker parked may have been elected again since.
        """
        self._over = True
        for name in self._unsaved & set(self._open_calls):
            self._report(self._open_calls[name], None, SharedCall())
        wait = self._job.wait
        elected = {wait.key} - self._asked if wait and wait.cause is Cause.BREAKER else set()
        for name in {*self._open_calls, *elected}:
            self._open_calls.pop(name, None)
            self._breakers.give_up(name, self._job)

    def closed(self) -> Sequence[Line]:
        """The lines of the breakers that this run has probed and closed. Asked after its end."""
        return [Line.for_breaker(name) for name in sorted(self._probed) if not self._breakers.blocks(name)]

    def _report(self, policy: BreakerPolicy, error: BaseException | None, call: SharedCall) -> None:
        if policy.name not in self._open_calls or isinstance(error, BreakerOpenError):
            return
        error_class = classify(error, self._rules) if error else None
        counts = policy.name not in call.counted
        if error is None or error_class is None or error_class is ErrorClass.PERMANENT:
            saved = self._breakers.succeeded(policy, self._job, counts=counts)
        elif error_class.counts:
            self._calls += 1
            # Other tenants read the item, and the message may quote a payload.
            name, kept = f"{self._job.lease.owner}.{self._calls}", class_name(next(leaves(error)))
            saved = self._breakers.failed(policy, self._job, call=name, error=kept, counts=counts)
        else:
            return
        if saved:
            call.counted.add(policy.name)
            self._open_calls.pop(policy.name, None)
        elif error_class is None:
            self._unsaved.add(policy.name)


#: The run that the handler in this context is in; None outside of a worker, such as in a test of a handler.
CURRENT_USE: ContextVar[BreakerUse | None] = ContextVar("tidemill_breakers", default=None)
