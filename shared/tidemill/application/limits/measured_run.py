"""What a run tells an adaptive concurrency: how long its handler took, and how it failed."""

import math
from datetime import datetime
from typing import Final

from tidemill.application.ports import Clock, Entered
from tidemill.domain.attempt.outcomes import Continued, Failed, Outcome, Snoozed, Succeeded
from tidemill.domain.breakers.downstream_errors import Classify, ErrorClass, classify
from tidemill.domain.error_text import leaves
from tidemill.domain.errors import JobTimeoutError
from tidemill.domain.limits.adaptive_limit import RunSample, Trouble

#: The handler came back, and its time counts.
_RETURNED: Final = (Succeeded, Snoozed, Continued)


class MeasuredRun:
    """One run under an adaptive concurrency. The thread of the handler measures, and any may ask for the sample."""

    def __init__(self, entered: Entered, clock: Clock, rules: Classify | None = None) -> None:
        """`clock` is steady. `rules` are those of the job type, as for its breakers."""
        self._entered = entered
        self._clock = clock
        self._rules = rules
        self._began: datetime | None = None
        self._seconds: float | None = None
        self._reported = False
        self._throttled = False

    def begin(self) -> None:
        """The handler is called now."""
        self._began = self._clock()

    def end(self) -> None:
        if self._began and not self._reported:
            self._seconds = max((self._clock() - self._began).total_seconds(), 0.0)

    def observed(self, seconds: float | None, throttled: bool) -> None:  # noqa: FBT001 - the handler names it
        """Note a call that the handler observed. The slowest call counts, instead of the time of the handler."""
        if seconds is not None:
            given: object = seconds
            if not isinstance(given, int | float) or isinstance(given, bool) or not 0 <= given < math.inf:
                raise ValueError(f"seconds is {seconds!r}; it must be a number, 0 or above")
            self._seconds = max(self._seconds or 0.0, seconds) if self._reported else seconds
            self._reported = True
        self._throttled = self._throttled or throttled

    def sample(self, outcome: Outcome) -> RunSample | None:
        """None if the run tells nothing of its downstream: its handler did not run, or its error is not its fault."""
        if self._began is None or self._entered.adapted is None:
            return None
        trouble = Trouble.THROTTLED if self._throttled else _trouble(outcome, self._rules)
        if trouble is None and not isinstance(outcome, _RETURNED):
            return None
        return RunSample(
            entered=self._entered.adapted,
            taken=self._entered.taken,
            seconds=self._seconds or 0.0,
            trouble=trouble,
        )


def _trouble(outcome: Outcome, rules: Classify | None) -> Trouble | None:
    """None for an error that would not count against a breaker either."""
    if not isinstance(outcome, Failed):
        return None
    if outcome.error_class == JobTimeoutError.__name__:
        return Trouble.TIMEOUT
    error_class = classify(outcome.cause, rules) if outcome.cause else ErrorClass.DEFECT
    if error_class is ErrorClass.THROTTLED:
        return Trouble.THROTTLED
    if not error_class.counts:
        return None
    timed_out = outcome.cause and any(isinstance(each, TimeoutError) for each in leaves(outcome.cause))
    return Trouble.TIMEOUT if timed_out else Trouble.ERROR
