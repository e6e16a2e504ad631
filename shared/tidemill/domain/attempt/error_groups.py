"""What an `ExceptionGroup` of a handler means for its job: one of its errors decides. Pure."""

from typing import Final

from tidemill.domain.error_text import group_message, leaves, text_of
from tidemill.domain.errors import (
    BreakerOpenError,
    CancelRequestedError,
    MissingInput,
    PermanentJobError,
    RetryAfter,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
)

#: An outage of the store, and a transaction of others: no failure of the job.
OUTAGE: Final = (StoreUnavailableError, TransactionConflictError)
#: After these the job runs again, and its attempt is given back.
_GIVEN_BACK: Final = (BreakerOpenError, MissingInput, *OUTAGE)


def decisive(error: BaseException) -> BaseException:
    """The error that decides what becomes of the job: `error` itself, or one of a group. The first of these rules fits.

    - One `CancelRequestedError` cancels the job, since a job with a cancel request never runs again.
    - One `PermanentJobError` ends it: if a part of the job can never succeed, neither can the job.
    - Of those that are `RetryAfter`, the longest counts: the downstream that asked for it would refuse an earlier call.
    - An error that costs no attempt, such as `BreakerOpenError`, decides only if all others are of this kind too: the
      job has failed if any part of it has.
    - Else the group is an ordinary failure, by the first error that is one.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    found = list(leaves(error))
    for ends in (CancelRequestedError, PermanentJobError):
        if ended := [each for each in found if isinstance(each, ends)]:
            return ended[0]
    if delayed := [each for each in found if isinstance(each, RetryAfter)]:
        return max(delayed, key=lambda each: each.delay)
    return next((each for each in found if not isinstance(each, _GIVEN_BACK)), found[0])


def as_failure(exit_: BaseException) -> Exception:
    """The failure of a run whose handler raised `SystemExit`, or another error that is not an `Exception`.

    It ends the attempt, not the thread or the process.
    """
    if not isinstance(exit_, BaseExceptionGroup):
        return TidemillError(f"the handler tried to end its process: {text_of(exit_, repr)}")
    failures = [each if isinstance(each, Exception) else as_failure(each) for each in leaves(exit_)]
    return ExceptionGroup(group_message(exit_), failures)
