"""When jobs of a type with a batch handler share a call of it, and what its outcomes must be. Pure."""

from typing import Any, Final

from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.errors import BatchOutcomesError
from tidemill.domain.job import Job
from tidemill.domain.waiting.holds import HoldCause

#: The most jobs of one call: a worker gets no more messages at a time.
MOST_JOBS: Final = 100
#: The least attempts of a type whose jobs share calls: one that a job may share, and one alone.
LEAST_ATTEMPTS: Final = 2


def may_share_a_call(job: Job, policy: RetryPolicy) -> bool:
    """`job` as claimed. Only a first attempt shares a call, and only if another attempt is left after it.

    A job that has failed alone would fail the others too, and a call that kills its worker costs each job an attempt.
    A job whose shared call failed without a verdict on it was held: it has lost no attempt, and its next run is alone.
    """
    return job.attempt == 1 and policy.max_attempts >= LEAST_ATTEMPTS and not job.held_by(HoldCause.CALL)


def calls_one_job_fails(jobs: int) -> int:
    """How many calls one bad job fails at most, if the jobs of each failed call are halved: from all jobs to itself."""
    return (jobs - 1).bit_length() + 1


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
