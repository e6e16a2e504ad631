"""Which frames, causes and ends of messages a traceback of each length keeps."""

from collections.abc import Callable
from typing import Any

import pytest

from tidemill.application.attempt.handler_call import call_handler
from tidemill.application.attempt.traceback_text import handler_traceback

LONG = 100_000
LEFT_OUT = "  [frames left out]\n"
MOST_FRAMES = 10


def raised_by(handler: Callable[[Any, Any], Any]) -> Exception:
    with pytest.raises(Exception) as raised:  # noqa: PT011
        call_handler(handler, None, None)
    return raised.value


def direct(_payload: Any, _run: Any) -> None:
    raise ValueError("direct")


def below(message: str) -> None:
    raise ValueError(message)


def calling(_payload: Any, _run: Any) -> None:
    below("below")


def wordy(_payload: Any, _run: Any) -> None:
    raise ValueError("x" * 10_000)


def frames_of(text: str) -> list[str]:
    return [line.rpartition(", in ")[2] for line in text.splitlines() if ", in " in line]


def test_without_frames_the_message_may_take_the_whole_text_and_else_half_of_it() -> None:
    assert handler_traceback(ValueError("x" * 1_000), longest=600) == f"ValueError: {'x' * 588}"
    for error in (raised_by(wordy), raised_by(lambda _payload, _run: below("x" * 10_000))):
        assert len(handler_traceback(error, longest=2_000).splitlines()[-1]) == 1_000


@pytest.mark.parametrize("handler", [direct, calling])
def test_a_text_that_just_fits_is_whole_and_says_of_no_frame_that_it_is_left_out(handler: Any) -> None:
    error = raised_by(handler)
    whole = handler_traceback(error, longest=LONG)

    assert frames_of(whole) == (["direct"] if handler is direct else ["calling", "below"])
    assert LEFT_OUT not in whole
    assert handler_traceback(error, longest=len(whole)) == whole


def test_the_frame_of_the_handler_goes_last() -> None:
    error = raised_by(calling)
    whole = handler_traceback(error, longest=LONG)
    message = "ValueError: below"
    first = whole[: whole.index("  File", 2)]
    without_inner = f"{first}{LEFT_OUT}{message}"

    assert handler_traceback(error, longest=len(whole) - 1) == without_inner
    assert handler_traceback(error, longest=len(without_inner)) == without_inner
    inner = whole.removeprefix(first)
    assert len(inner) < len(without_inner)
    assert handler_traceback(error, longest=len(without_inner) - 1) == inner
    assert handler_traceback(error, longest=len(inner)) == inner
    assert handler_traceback(error, longest=len(inner) - 1) == message


def nested(levels: int) -> None:
    """Each frame differs from the next, so that none is counted as a repetition."""
    if levels % 2:
        odd(levels)
    elif levels:
        nested(levels - 1)
    else:
        raise ValueError("deep")


def odd(levels: int) -> None:
    nested(levels - 1)


@pytest.mark.parametrize("more", [0, 1])
def test_of_many_frames_the_first_and_the_nine_innermost_are_shown(more: int) -> None:
    def handler(_payload: Any, _run: Any) -> None:
        nested(5 + more)

    text = handler_traceback(raised_by(handler), longest=LONG)

    inner = [name for name in frames_of(text) if name != "handler"]
    assert (frames_of(text)[0], len(inner), LEFT_OUT in text) == ("handler", MOST_FRAMES - 1, bool(more))
    assert inner[-2:] == ["odd", "nested"]


def test_of_an_error_without_a_handler_the_ten_innermost_frames_are_shown() -> None:
    with pytest.raises(ValueError, match="deep") as raised:
        nested(20)
    assert len(frames_of(handler_traceback(raised.value, longest=LONG))) == MOST_FRAMES


def test_a_handler_that_runs_a_job_itself_is_shown_with_that_job() -> None:
    def outer(_payload: Any, _run: Any) -> None:
        call_handler(direct, None, None)

    frames = frames_of(handler_traceback(raised_by(outer), longest=LONG))

    assert frames == ["outer", "call_handler", "direct"]


@pytest.mark.parametrize("given", [True, False])
def test_a_cause_is_shown_if_the_whole_of_it_fits(given: bool) -> None:
    """An error that was raised while another was handled has that as its cause."""
    cause, error = KeyError("first"), ValueError("second")
    if given:
        error.__cause__ = cause
    else:
        error.__context__ = cause
    whole = "KeyError: 'first'\nwhich caused:\nValueError: second"

    assert handler_traceback(error, longest=LONG) == whole
    assert handler_traceback(error, longest=len(whole)) == whole
    assert handler_traceback(error, longest=len(whole) - 1) == "ValueError: second"


def test_a_cause_that_was_given_counts_rather_than_the_error_that_was_handled() -> None:
    error = ValueError("second")
    error.__context__, error.__cause__ = KeyError("handled"), OSError("given")
    assert handler_traceback(error, longest=LONG) == "OSError: given\nwhich caused:\nValueError: second"
