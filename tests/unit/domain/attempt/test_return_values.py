"""The values that a handler returns instead of a plain result: which waits, names and reasons they take."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tidemill.domain.attempt.return_values import WORK_NOT_DONE, Cancelled, Continue, Done, GiveUp, Snooze, WaitFor

LONGEST = timedelta(days=366)
_WAITS: dict[str, Callable[[Any], Any]] = {
    "Snooze": lambda span: Snooze(span).after,
    "Continue": lambda span: Continue(after=span).after,
    "WaitFor": lambda span: WaitFor("answer", span).timeout,
}


@pytest.mark.parametrize("span", [timedelta(0), LONGEST])
@pytest.mark.parametrize("made", _WAITS.values(), ids=_WAITS)
def test_a_wait_lasts_up_to_a_year(made: Callable[[Any], Any], span: timedelta) -> None:
    assert made(span) == span


@pytest.mark.parametrize("span", [timedelta(microseconds=-1), LONGEST + timedelta(microseconds=1)])
@pytest.mark.parametrize("made", _WAITS.values(), ids=_WAITS)
def test_a_wait_into_the_past_or_beyond_a_year_is_refused(made: Callable[[Any], Any], span: timedelta) -> None:
    with pytest.raises(ValueError, match="must be from 0 to 366 days"):
        made(span)


@pytest.mark.parametrize("made", _WAITS.values(), ids=_WAITS)
def test_a_wait_in_plain_seconds_is_refused(made: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="must be a timedelta"):
        made(30)


def test_the_name_of_a_signal_and_the_reason_of_a_death_are_checked() -> None:
    with pytest.raises(ValueError, match="invalid signal name 'An answer'"):
        WaitFor("An answer", timedelta(0))
    with pytest.raises(TypeError, match="takes its reason as a str"):
        GiveUp(None)  # type: ignore[arg-type]
    assert (WaitFor("answer", timedelta(0)).name, GiveUp("no").reason) == ("answer", "no")


def test_a_job_continues_at_once_unless_it_says_otherwise() -> None:
    assert Continue() == Continue(checkpoint=None, after=timedelta(0))


@pytest.mark.parametrize(
    ("returned", "done"),
    [
        (None, True),
        (Done(), True),
        (Continue(), True),
        (Snooze(LONGEST), False),
        (WaitFor("answer", LONGEST), False),
        (GiveUp("no"), False),
        (Cancelled(), False),
    ],
)
def test_a_run_that_put_its_work_off_says_nothing_about_the_services_it_calls(returned: Any, *, done: bool) -> None:
    assert isinstance(returned, WORK_NOT_DONE) is not done
