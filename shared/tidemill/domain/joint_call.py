"""When jobs of a type with a batch handler share a call of it, and what its outcomes must be. Pure."""

from typing import Any, Final

from tidemill.domain.errors import BatchOutcomesError
from tidemill.domain.job import Job
from tidemill.domain.retry import RetryPolicy

#: The most jobs of one call: a worker gets no more messages at a time.
MOST_JOBS: Final = 100
#: Of a job type whose jobs share calls: one that a job may share, and one alone.
LEAST_ATTEMPTS: Final = 2


def may_share_a_call(job: Job, policy: RetryPolicy) -> bool:
    """`job` as claimed. Only a first attempt shares a call, and only if another attempt is left after it.

    If the call fails, each of its jobs has lost this attempt and runs alone from then on. So a payload on which the
    handler fails costs the others one attempt at most, and ends no other job. A suspect has had an attempt before.
    """
    return job.attempt == 1 and policy.max_attempts >= LEAST_ATTEMPTS


def outcomes_of(returned: Any, count: int) -> list[Any]:
    """One for each job of the call, in their order. Raises `BatchOutcomesError`."""
    if not isinstance(returned, list | tuple):
        raise BatchOutcomesError(
            f"a batch handler must return a list with one outcome for each job; it returned {type(returned).__name__}"
        )
    if len(returned) != count:
        raise BatchOutcomesError(
            f"a batch handler must return one outcome for each job; it returned {len(returned)} for {count} jobs"
        )
    return list(returned)
