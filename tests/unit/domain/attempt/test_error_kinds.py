"""The few kinds of errors that metrics count."""

import pytest

from tests.support.builders import an_error
from tidemill.domain.attempt.error_kinds import ErrorKind, kind_of
from tidemill.domain.job import CRASHED, DEADLINE_PASSED, NO_ATTEMPT_LEFT, TOO_MANY_HOPS
from tidemill.domain.records import replace


@pytest.mark.parametrize(
    ("error_class", "retried", "not_retried"),
    [
        ("JobTimeoutError", ErrorKind.TIMEOUT, ErrorKind.TIMEOUT),
        ("ValueError", ErrorKind.TRANSIENT, ErrorKind.PERMANENT),
        (CRASHED, ErrorKind.CRASH, ErrorKind.OTHER),
        (DEADLINE_PASSED, ErrorKind.TRANSIENT, ErrorKind.OTHER),
        (NO_ATTEMPT_LEFT, ErrorKind.TRANSIENT, ErrorKind.OTHER),
        (TOO_MANY_HOPS, ErrorKind.TRANSIENT, ErrorKind.OTHER),
    ],
)
def test_an_error_is_counted_by_its_class_and_by_whether_another_attempt_may_help(
    error_class: str, retried: ErrorKind, not_retried: ErrorKind
) -> None:
    error = an_error(error_class=error_class)

    assert (kind_of(error), kind_of(replace(error, retryable=False))) == (retried, not_retried)
