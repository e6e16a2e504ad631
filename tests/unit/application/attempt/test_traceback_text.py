"""The traceback of a failed run: the handler's frames and no others, and bounded."""

import asyncio
import sys
from typing import Any

import pytest

from tests.support.builders import a_job_type, reference_to, types_of
from tests.support.single_job import INVOCATION, Clock, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.run import Run
from tidemill.application.attempt.traceback_text import handler_traceback
from tidemill.domain.errors import PermanentJobError
from tidemill.domain.job import Job
from tidemill.dynamodb.job_store import DynamoJobStore

LONG = 10_000


def raised_by(call: Any) -> BaseException:
    with pytest.raises(BaseException) as raised:  # noqa: PT011
        call()
    return raised.value


def failing(_payload: Any, _run: Run) -> None:
    def below() -> None:
        raise ValueError("no such address")

    below()


def leaving(_payload: Any, _run: Run) -> None:
    sys.exit(3)


def run_error(store: DynamoJobStore, job: Job, handler: Any) -> BaseException:
    attempt = Attempt(
        reference_to(job), tools(store, types_of(a_job_type(handler)), Clock()), deadline=Clock().now + INVOCATION
    )
    assert attempt.claim(remaining=INVOCATION)
    return raised_by(attempt.run)


def test_the_frames_begin_at_the_handler(store: DynamoJobStore, queued: Job) -> None:
    lines = handler_traceback(run_error(store, queued, failing), longest=LONG).splitlines()

    frames = [line.rpartition(", in ")[2] for line in lines if ", in " in line]
    assert frames == ["failing", "below"]
    assert lines[-1] == "ValueError: no such address"


def test_an_exit_of_the_handler_shows_where_it_was_called(store: DynamoJobStore, queued: Job) -> None:
    text = handler_traceback(run_error(store, queued, leaving), longest=LONG)

    cause, _, error = text.partition("\nwhich caused:\n")
    assert "in leaving" in cause
    assert cause.endswith("SystemExit: 3")
    assert error.endswith("the handler tried to end its process: SystemExit(3)")
    assert "_call_handler" not in text


def test_an_error_that_no_handler_raised_keeps_its_frames() -> None:
    assert "in raised_by" in handler_traceback(raised_by(lambda: int("x")), longest=LONG)


def throw(error: Exception, cause: Exception | None) -> None:
    raise error from cause


def chained() -> None:
    cause: Exception | None = None
    for error in (KeyError("first"), LookupError("second"), OSError("third")):
        try:
            throw(error, cause)
        except Exception as thrown:  # noqa: BLE001
            cause = thrown
    throw(ValueError("last"), cause)


def test_the_nearest_causes_are_kept() -> None:
    text = handler_traceback(raised_by(chained), longest=LONG)

    assert "first" not in text
    assert text.index("LookupError: second") < text.index("OSError: third") < text.index("ValueError: last")


def test_a_suppressed_context_and_a_circle_of_causes_end_the_chain() -> None:
    suppressed = ValueError("outer")
    suppressed.__context__, suppressed.__suppress_context__ = KeyError("inner"), True
    circle = ValueError("circle")
    circle.__cause__ = KeyError("other")
    circle.__cause__.__cause__ = circle

    assert handler_traceback(suppressed, longest=LONG) == "ValueError: outer"
    assert handler_traceback(circle, longest=LONG).count("circle") == 1


def descend(levels: int) -> None:
    if levels == 0:
        raise ValueError("deep")
    descend(levels - 1)


def test_a_deep_traceback_keeps_its_innermost_frames() -> None:
    text = handler_traceback(raised_by(lambda: descend(50)), longest=LONG)

    # Three of nine equal frames, as Python prints them, then the innermost one.
    assert text.count(", in descend") == 4
    assert "[Previous line repeated 6 more times]" in text
    assert 'raise ValueError("deep")' in text


def deep(_payload: Any, _run: Run) -> None:
    descend(50)


def test_a_deep_traceback_keeps_the_frame_of_its_handler(store: DynamoJobStore, queued: Job) -> None:
    error = run_error(store, queued, deep)
    for longest in (LONG, 700):
        text = handler_traceback(error, longest=longest)
        lines = text.splitlines()
        assert len(text) <= longest
        assert lines[0].endswith(", in deep")
        assert "  [frames left out]" in lines
        assert lines[-2:] == ['    raise ValueError("deep")', "ValueError: deep"]
    assert handler_traceback(error, longest=40) == "ValueError: deep"


@pytest.mark.parametrize("longest", [0, 5, 40, 200, 400, 700])
def test_the_text_is_never_longer_than_allowed(longest: int) -> None:
    for error in (raised_by(chained), raised_by(lambda: descend(50)), ValueError("x" * 1000)):
        text = handler_traceback(error, longest=longest)
        assert len(text) <= longest
        assert text.startswith("ValueError"[: longest // 2]) or ", in " in text


def test_causes_go_before_frames() -> None:
    error = raised_by(chained)
    whole = handler_traceback(error, longest=LONG)
    alone = whole.rpartition("which caused:\n")[2]

    assert handler_traceback(error, longest=len(whole) - 1).count("which caused:") == 1
    assert handler_traceback(error, longest=len(alone)) == alone
    assert handler_traceback(error, longest=2 * len("ValueError: last")) == "ValueError: last"
    assert handler_traceback(error, longest=10) == "Value"


def test_a_long_message_leaves_half_of_the_text_to_the_frames() -> None:
    text = handler_traceback(raised_by(lambda: throw(ValueError("x" * 1000), None)), longest=600)

    assert "in throw" in text
    assert len(text.splitlines()[-1]) == 300


def test_lone_surrogates_are_replaced() -> None:
    assert handler_traceback(ValueError("caf\ud83d"), longest=LONG) == "ValueError: caf?"


def test_notes_are_shown_and_an_unreadable_message_fails_nothing() -> None:
    class Unreadable(Exception):  # noqa: N818
        def __str__(self) -> str:
            raise RuntimeError

    noted = ValueError("what")
    noted.add_note("why")

    assert handler_traceback(noted, longest=LONG) == "ValueError: what\nwhy"
    assert "Unreadable" in handler_traceback(Unreadable(), longest=LONG)


class _RaisingError(Exception):
    """Any attribute that it lacks raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_an_error_whose_attributes_raise_has_a_text() -> None:
    odd = SyntaxError("bad")
    odd.lineno, odd.text = 1, 5  # type: ignore[assignment]  # as code that fills it in wrongly

    for error in (_RaisingError("x"), odd):
        text = handler_traceback(error, longest=LONG)
        assert type(error).__name__ in text.splitlines()[0]
        assert len(handler_traceback(error, longest=10)) <= 10


def in_tasks(_payload: Any, _run: Run) -> None:
    async def call(error: Exception) -> None:
        raise error

    async def calls() -> None:
        async with asyncio.TaskGroup() as tasks:
            for error in (TimeoutError("slow"), PermanentJobError("no such card"), ValueError("c"), ValueError("d")):
                tasks.create_task(call(error))

    asyncio.run(calls())


def test_a_group_shows_the_error_that_decides_last_and_as_many_others_as_fit(
    store: DynamoJobStore, queued: Job
) -> None:
    error = run_error(store, queued, in_tasks)
    text = handler_traceback(error, longest=LONG)

    assert text.splitlines()[0].endswith(", in in_tasks")
    head, _, held = text.partition("\nwhich holds:\n")
    assert head.endswith("ExceptionGroup: unhandled errors in a TaskGroup (4 sub-exceptions)")
    assert [block.splitlines()[-1] for block in held.split("\nbeside:\n")] == [
        "TimeoutError: slow",
        "ValueError: c",
        "tidemill.domain.errors.PermanentJobError: no such card",
    ]
    assert held.count(", in call") == 3
    for longest in (0, 50, 300, 700, 1500):
        assert len(short := handler_traceback(error, longest=longest)) <= longest
        assert longest < 300 or short.endswith("PermanentJobError: no such card")


def test_of_many_causes_the_nearest_are_read() -> None:
    """Each further one would raise."""
    error: BaseException = _ExitingError()
    for _ in range(3):
        cause, error = error, ValueError("near")
        error.__cause__ = cause

    assert handler_traceback(error, longest=LONG).count("near") == 3


class _ExitingError(Exception):
    @property
    def __cause__(self) -> Any:  # type: ignore[override]  # as any class may
        raise SystemExit

    def __str__(self) -> str:
        raise SystemExit


def test_an_error_whose_text_ends_the_process_has_a_traceback() -> None:
    assert handler_traceback(_ExitingError(), longest=LONG) == "_ExitingError: its traceback could not be read"
    assert "could not be read" in handler_traceback(ExceptionGroup("g", [_ExitingError()]), longest=LONG)
