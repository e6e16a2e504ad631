"""The breakers that one run uses: those that its type depends on, and those that its handler enters by itself."""

from collections.abc import Sequence
from contextvars import ContextVar

from tidemill.application.breakers import Breakers
from tidemill.domain.breaker import BreakerPolicy
from tidemill.domain.downstream_errors import Classify, ErrorClass, classify
from tidemill.domain.errors import BreakerOpenError
from tidemill.domain.job import Job
from tidemill.domain.waiting import Cause


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

    def admit(self, policy: BreakerPolicy) -> None:
        """Before a call. Raises `BreakerOpenError`."""
        self._asked.add(policy.name)
        if not self._breakers.admits(policy, self._job):
            raise BreakerOpenError(policy.name)
        self._open_calls[policy.name] = policy

    def admit_all(self) -> None:
        """Before the handler. Raises `BreakerOpenError` for the first one that is open."""
        for policy in self._depends_on:
            self.admit(policy)

    def leave(self, policy: BreakerPolicy, error: BaseException | None) -> None:
        """The block of a handler has ended."""
        self._reported.add(policy.name)
        self._report(policy, error)

    def ended(self, error: BaseException | None) -> str | None:
        """The handler has ended. The name of an open breaker that the error was counted against, or would have been."""
        for policy in self._depends_on:
            if policy.name not in self._reported:
                self._report(policy, error)
        if error is None:
            return None
        if isinstance(error, BreakerOpenError):
            return error.name
        counts = classify(error, self._rules).counts
        used = {policy.name for policy in self._depends_on} | self._reported
        return next((name for name in sorted(used) if counts and self._breakers.blocks(name)), None)

    def give_up(self) -> None:
        """The run is over. A call without a result, or an elected job that did not call, leaves the probe to another.

        Such a job was paused, for example. One that the breaker parked may have been elected again since.
        """
        wait = self._job.wait
        elected = {wait.key} - self._asked if wait and wait.cause is Cause.BREAKER else set()
        for name in {*self._open_calls, *elected}:
            self._open_calls.pop(name, None)
            self._breakers.give_up(name, self._job)

    def _report(self, policy: BreakerPolicy, error: BaseException | None) -> None:
        if policy.name not in self._open_calls or isinstance(error, BreakerOpenError):
            return
        error_class = classify(error, self._rules) if error else None
        if error_class is None or error_class is ErrorClass.PERMANENT:
            self._breakers.succeeded(policy, self._job)
        elif error_class.counts:
            self._breakers.failed(policy, self._job)
        else:
            return
        self._open_calls.pop(policy.name, None)


#: The run that the handler in this context is in; None outside of a worker, such as in a test of a handler.
CURRENT_USE: ContextVar[BreakerUse | None] = ContextVar("tidemill_breakers", default=None)
