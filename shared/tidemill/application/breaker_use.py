"""The breakers that one run uses: those that its type depends on, and those that its handler enters by itself."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final

from tidemill.application.breakers import Breakers
from tidemill.domain.breaker import BreakerPolicy
from tidemill.domain.downstream_errors import Classify, ErrorClass, classify
from tidemill.domain.error_groups import decisive
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import BreakerOpenError, JobTimeoutError
from tidemill.domain.job import Job
from tidemill.domain.waiting import Cause, Line

#: In characters, of the error that a breaker keeps.
LONGEST_ERROR: Final = 200


class BreakerUse:
    """Of one run."""

    def __init__(
        self, breakers: Breakers, job: Job, *, depends_on: Sequence[BreakerPolicy], rules: Classify | None
    ) -> None:
        self._breakers = breakers
        self._job = job
        self._depends_on = depends_on
        self._rules = rules
        #: Those that the run has asked, whether they admitted it or not.
        self._asked: set[str] = set()
        #: Those that a call may use, by name, until its result is known.
        self._open_calls: dict[str, BreakerPolicy] = {}
        #: Those whose block the handler has left, so its end says nothing more about them.
        self._reported: set[str] = set()
        #: Those that worked, while the store did not respond.
        self._unsaved: set[str] = set()
        #: Those that were open when they admitted the run: it is their probe.
        self._probed: set[str] = set()
        #: Of the run, so that each failure of it counts.
        self._calls = 0
        self._over = False

    def admit(self, policy: BreakerPolicy) -> None:
        """Before a call. Raises `BreakerOpenError`, also for a handler that goes on after the end of its run."""
        self._asked.add(policy.name)
        if self._over or not self._breakers.admits(policy, self._job):
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
            self._reported.add(policy.name)
            self._report(policy, error)

    def handler_ended(self, error: BaseException | None) -> str | None:
        """Record its result. The name of an open breaker that the error was counted against, or would have been."""
        timed_out = isinstance(error, JobTimeoutError)
        # A run whose time is over may still be inside of a block.
        hanging = [policy for policy in self._open_calls.values() if timed_out]
        used = {policy.name: policy for policy in (*self._depends_on, *hanging)}
        for policy in used.values():
            if timed_out or policy.name not in self._reported:
                self._report(policy, error)
        self._over = True
        if error is None:
            return None
        if isinstance(leaf := decisive(error), BreakerOpenError):
            return leaf.name
        counts = classify(error, self._rules).counts
        names = sorted({*used, *self._reported})
        return next((name for name in names if counts and self._breakers.blocks(name)), None)

    def give_up(self) -> None:
        """The run is over. A call without a result, or an elected job that did not call, leaves the probe to another.

        Such a job was paused, for example. One that the breaker parked may have been elected again since.
        """
        self._over = True
        for name in self._unsaved & set(self._open_calls):
            self._report(self._open_calls[name], None)
        wait = self._job.wait
        elected = {wait.key} - self._asked if wait and wait.cause is Cause.BREAKER else set()
        for name in {*self._open_calls, *elected}:
            self._open_calls.pop(name, None)
            self._breakers.give_up(name, self._job)

    def closed(self) -> Sequence[Line]:
        """The lines of the breakers that this run has probed and closed. Asked after its end."""
        return [Line.for_breaker(name) for name in sorted(self._probed) if not self._breakers.blocks(name)]

    def _report(self, policy: BreakerPolicy, error: BaseException | None) -> None:
        if policy.name not in self._open_calls or isinstance(error, BreakerOpenError):
            return
        error_class = classify(error, self._rules) if error else None
        if error is None or error_class is None or error_class is ErrorClass.PERMANENT:
            saved = self._breakers.succeeded(policy, self._job)
        elif error_class.counts:
            self._calls += 1
            call = f"{self._job.owner}.{self._calls}"
            saved = self._breakers.failed(policy, self._job, call=call, error=error_text(error)[:LONGEST_ERROR])
        else:
            return
        if saved:
            self._open_calls.pop(policy.name, None)
        elif error_class is None:
            self._unsaved.add(policy.name)


#: The run that the handler in this context is in; None outside of a worker, such as in a test of a handler.
CURRENT_USE: ContextVar[BreakerUse | None] = ContextVar("tidemill_breakers", default=None)
