"""A failed call of a batch handler: whether another one, with half of its jobs, can find the job that it is about."""

import threading
from datetime import datetime, timedelta

from msgspec import Struct

from tidemill.domain.attempt.error_groups import decisive
from tidemill.domain.batch_handlers.joint_call import calls_one_job_fails
from tidemill.domain.errors import BatchCallError, RetryAfter


class Halving:
    """A call and those that follow it, each with half of the jobs of a failed one. `jobs` are those of the first."""

    def __init__(self, jobs: int) -> None:
        #: Held during each further call: several at a time would load a downstream more than the first one did.
        self.turn = threading.Lock()
        #: How long the longest call took.
        self.longest = timedelta(0)
        self._most_failures = calls_one_job_fails(jobs)
        self._failures = 0

    @property
    def helps(self) -> bool:
        """Whether one job may be the cause. More consecutive failures have another cause, such as a downstream."""
        return self._failures <= self._most_failures

    def ended(self, error: Exception | None, took: timedelta) -> None:
        self._failures = self._failures + 1 if error else 0
        self.longest = max(self.longest, took)


class FailedCall(Struct, frozen=True):
    """A call of several jobs that failed with `error`."""

    error: Exception
    jobs: int
    halving: Halving

    @property
    def another_helps(self) -> bool:
        """`RetryAfter` asks for time, whichever job it is about."""
        return self.halving.helps and not isinstance(decisive(self.error), RetryAfter)

    def require_use_of_another(self, *, by: datetime, now: datetime) -> None:
        """Raises `BatchCallError` if another call does not help, or may take longer than until `by`."""
        if not self.another_helps or now + self.halving.longest > by:
            raise self.error_of_one()

    def error_of_one(self) -> BatchCallError:
        """For one of the jobs: no two threads raise the same exception."""
        return BatchCallError(self.error, self.jobs)
