"""What a handler raises reaches the attempt; some errors say more than Python does."""

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tidemill.application.attempt.handler_call import call_handler


def test_a_signal_handler_that_is_set_in_a_handler_is_refused_with_advice() -> None:
    def handler(_payload: Any, _run: Any) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)

    with ThreadPoolExecutor() as pool:
        error = pool.submit(call_handler, handler, {}, None).exception()

    assert type(error) is ValueError
    text = str(error)
    assert text.startswith("signal only works in main thread")
    assert text.endswith("set signal handlers at the top of the job file")


@pytest.mark.parametrize("raised", [ValueError(), ValueError("no"), ValueError(1, "only works in main thread")])
def test_other_errors_stay_as_they_are(raised: ValueError) -> None:
    arguments = raised.args

    def handler(_payload: Any, _run: Any) -> None:
        raise raised

    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the very object
        call_handler(handler, {}, None)
    assert (caught.value, caught.value.args) == (raised, arguments)
