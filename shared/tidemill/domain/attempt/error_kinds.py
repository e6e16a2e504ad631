"""The kinds of errors that metrics count. Few and fixed: handlers may raise any number of classes."""

from enum import StrEnum
from typing import Final

from tidemill.domain.errors import JobTimeoutError
from tidemill.domain.job import CRASHED, DEADLINE_PASSED, NO_ATTEMPT_LEFT, TOO_MANY_HOPS, AttemptError


class ErrorKind(StrEnum):
    """Why an attempt failed."""

    #: The handler raised an error that a later attempt may not meet.
    TRANSIENT = "transient"
    #: The handler raised `PermanentJobError` or gave up, or its result cannot be stored.
    PERMANENT = "permanent"
    #: The run took longer than its lane or its type allows.
    TIMEOUT = "timeout"
    #: The worker exited without reporting a result.
    CRASH = "crash"
    #: The job died before its handler could run: its deadline had passed, or it had too many hops or attempts.
    OTHER = "other"


#: Errors of jobs that died before a run.
_BEFORE_A_RUN: Final = frozenset({CRASHED, DEADLINE_PASSED, NO_ATTEMPT_LEFT, TOO_MANY_HOPS})


def kind_of(error: AttemptError) -> ErrorKind:
    if error.error_class == JobTimeoutError.__name__:
        return ErrorKind.TIMEOUT
    if error.retryable:
        return ErrorKind.CRASH if error.error_class == CRASHED else ErrorKind.TRANSIENT
    return ErrorKind.OTHER if error.error_class in _BEFORE_A_RUN else ErrorKind.PERMANENT
