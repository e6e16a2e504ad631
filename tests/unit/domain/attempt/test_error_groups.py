"""What an `ExceptionGroup` means for its job, and which text of it is kept."""

from datetime import timedelta
from typing import Any

import pytest

from tidemill.domain.attempt.error_groups import as_failure, decisive
from tidemill.domain.attempt.outcomes import Awaits, Failed, Stopped, outcome_of
from tidemill.domain.error_text import error_text, leaves
from tidemill.domain.errors import (
    BreakerOpenError,
    CancelRequestedError,
    MissingInput,
    PermanentJobError,
    RetryAfter,
    StepError,
    StoreUnavailableError,
)
from tidemill.domain.job import DeathReason

NO = ValueError("no")
NEVER = PermanentJobError("never")
STEP = StepError("a wrong step")
CANCEL = CancelRequestedError("stop")
SOON, LATE = RetryAfter(5), RetryAfter(60)
OPEN, DOWN = BreakerOpenError("payments"), StoreUnavailableError("down")
MISSING = MissingInput("rates", after=timedelta(hours=1))


def group(*errors: BaseException, message: str = "unhandled errors in a TaskGroup") -> BaseException:
    return BaseExceptionGroup(message, errors)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NO, NO),
        (group(NO), NO),
        (group(NO, NEVER), NEVER),
        (group(NO, group(NO, group(STEP))), STEP),
        (group(NEVER, LATE, CANCEL), CANCEL),
        (group(SOON, NO, LATE), LATE),
        (group(LATE, NEVER), NEVER),
        (group(OPEN, NO), NO),
        (group(OPEN, LATE), LATE),
        (group(OPEN, DOWN), OPEN),
        (group(DOWN, group(MISSING)), DOWN),
        (group(MISSING, DOWN), MISSING),
    ],
)
def test_one_error_of_a_group_decides(error: BaseException, expected: BaseException) -> None:
    assert decisive(error) is expected


def test_a_group_has_the_outcome_of_the_error_that_decides() -> None:
    assert outcome_of(group(NO, CANCEL)) == Stopped()
    assert isinstance(outcome_of(group(MISSING, MISSING)), Awaits)
    died = outcome_of(group(NO, NEVER))
    assert isinstance(died, Failed)
    assert (died.error_class, died.death) == ("PermanentJobError", DeathReason.PERMANENT)
    assert died.message == "never (in the group: unhandled errors in a TaskGroup; beside ValueError: no)"
    later = outcome_of(group(NO, LATE))
    assert isinstance(later, Failed)
    assert (later.error_class, later.death, later.delay) == ("RetryAfter", None, timedelta(seconds=60))


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ((NO,), "no (in the group: calls)"),
        ((NO, KeyError("a"), OSError("b")), "no (in the group: calls; beside KeyError: 'a'; OSError: b)"),
        ((ValueError(),), " (in the group: calls)"),
        ((NO, *(KeyError(each) for each in "abcd")), "; beside KeyError: 'a'; KeyError: 'b'; KeyError: 'c'; more)"),
        ((ValueError("x" * 1_000), ValueError("y" * 1_000)), f"{'x' * 300} (in the group: calls; beside ValueError: y"),
    ],
)
def test_the_message_of_a_group_names_its_first_errors(errors: tuple[Exception, ...], message: str) -> None:
    stored = Failed.because(group(*errors, message="calls")).message
    assert message in stored
    assert error_text(group(*errors, message="calls")) == f"{type(errors[0]).__name__}: {stored}"[:300]


def test_of_a_huge_or_deep_group_the_first_errors_are_read() -> None:
    deep: BaseException = NEVER
    for _ in range(100_000):
        deep = group(deep)
    assert isinstance(decisive(deep), BaseExceptionGroup)
    assert len(list(leaves(group(*[NO] * 1_000_000)))) == 999
    assert decisive(group(*[NO] * 1_000_000)) is NO


def test_a_subclass_does_not_say_what_a_group_holds() -> None:
    class HidingGroup(ExceptionGroup[Exception]):
        @property
        def exceptions(self) -> Any:
            raise SystemExit

    assert decisive(HidingGroup("hidden", [NO, NEVER])) is NEVER


@pytest.mark.parametrize(
    ("exit_", "expected"),
    [(group(SystemExit(3), NO), SystemExit), (group(NO, KeyboardInterrupt()), NO), (group(SystemExit(), NEVER), NEVER)],
)
def test_an_exit_in_a_group_is_an_ordinary_failure(exit_: BaseException, expected: Any) -> None:
    meant = decisive(as_failure(exit_))
    if isinstance(expected, Exception):
        assert meant is expected
    else:
        assert str(meant) == "the handler tried to end its process: SystemExit(3)"
