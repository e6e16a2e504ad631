"""The gates of circuit breakers. A job whose downstream is open waits in the line of its breaker."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tidemill.application.attempt.attempt_holds import parked_in_listed_line
from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.gate import Gate
from tidemill.application.breakers.breaker_use import CURRENT_USE, BreakerUse, SharedCall
from tidemill.domain.attempt.error_groups import decisive
from tidemill.domain.attempt.outcomes import Outcome
from tidemill.domain.attempt.return_values import WORK_NOT_DONE
from tidemill.domain.errors import BatchCallError, BreakerOpenError, JobTimeoutError, StoreUnavailableError
from tidemill.domain.waiting.waiting import Line


def use_of(run: ClaimedRun) -> BreakerUse | None:
    """None if the worker counts no calls of downstreams, or does not know the type."""
    if run.context.breakers is None or run.unknown:
        return None
    return BreakerUse(
        run.context.breakers,
        run.job,
        depends_on=run.job_type.depends_on,
        rules=run.job_type.classify,
        deadline=lambda: run.wall_deadline,
    )


class _GateOfUse(Gate):
    """The gates of breakers share the use of the run."""

    def __init__(self, run: ClaimedRun, use: BreakerUse | None) -> None:
        super().__init__(run)
        self._use = use


class BreakerGate(_GateOfUse):
    """Before the run asks for what else it needs. It changes nothing on the way in."""

    def enter(self) -> None:
        """Raises `BreakerOpenError`."""
        if self._use:
            self._use.require_depends_on()

    def leave(self) -> None:
        """Leave the probe that the run did not make to another job. A breaker that it closed lets its line move."""
        if self._use is None:
            return
        self._use.give_up()
        wait = self.run.job.wait
        for line in self._use.closed():
            # A probe out of the line passes on its turn.
            if wait is None or wait.line != line:
                self.run.context.releaser.drain(line)


class ProbeGate(_GateOfUse):
    """The job may be a probe from here on. The last gate: a probe that makes no call costs its breaker an interval."""

    def enter(self) -> None:
        """Raises `BreakerOpenError`."""
        if self._use:
            self._use.admit_depends_on()

    def counts_in(self, call: SharedCall) -> None:
        """Its breakers count the call once, and not for each of its jobs."""
        if self._use:
            self._use.share(call)

    @contextmanager
    def around_call(self) -> Iterator[None]:
        """The handler may ask for breakers by itself. Raises `BreakerOpenError` if its error is that of an open one."""
        token = CURRENT_USE.set(self._use)
        try:
            yield
        except Exception as error:
            of_the_call = error.error if isinstance(error, BatchCallError) else error
            if self.run.attempt.in_handler and (name := self._ended(of_the_call)):
                raise BreakerOpenError(name) from error
            if (meant := decisive(error)) is not error and isinstance(meant, BreakerOpenError):
                raise meant from None
            raise
        finally:
            CURRENT_USE.reset(token)

    def returned(self, value: Any) -> None:
        if not isinstance(value, WORK_NOT_DONE):
            self._ended(None)

    def instead_of(self, error: Exception) -> Outcome | None:
        """The job waits until the breaker closes, or until it is elected to probe the downstream."""
        if isinstance(error, BreakerOpenError):
            return self._parked(error.name)
        # The time of a handler is up, and a downstream whose breaker is open took too long.
        if isinstance(error, JobTimeoutError) and self.run.attempt.in_handler and (name := self._ended(error)):
            with suppress(StoreUnavailableError):
                return self._parked(name)
        return None

    def _parked(self, name: str) -> Outcome:
        return parked_in_listed_line(self.run, Line.for_breaker(name))

    def _ended(self, error: Exception | None) -> str | None:
        """The handler has ended. Returns the name of the open breaker that its error belongs to."""
        return self._use.handler_ended(error) if self._use and not self.run.attempt.has_ended() else None
