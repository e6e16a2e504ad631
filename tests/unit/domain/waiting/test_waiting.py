"""The lines of parked jobs, and the waits in them."""

from collections.abc import Callable

import pytest

from tests.support.builders import NOW
from tidemill.domain.waiting.waiting import Cause, Line, Wait


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (Line.for_limit, "limit"),
        (Line.for_pause, "pause"),
        (Line.for_type, "type"),
        (Line.for_breaker, "breaker"),
    ],
)
def test_a_line_has_a_cause_and_a_key_that_fits_into_the_key_of_an_item(
    line: Callable[[str], Line], cause: str
) -> None:
    assert line("payments") == Line(Cause(cause), "payments")
    assert line("k" * 256) == Line(Cause(cause), "k" * 256)
    # The SHA-256 of 257 characters.
    assert line("k" * 257).key == "a5de0e3c93b4322bf1d2e6cc13119219d665142374de7f2b06bae237759c73e2"


@pytest.mark.parametrize(
    ("cause", "alone"),
    [("limit", False), ("pause", False), ("type", False), ("breaker", False), ("signal", True), ("input", True)],
)
def test_a_job_waits_alone_for_a_signal_and_otherwise_in_a_line(cause: str, *, alone: bool) -> None:
    wait = Wait(cause=Cause(cause), key="k", since=NOW)

    assert wait.alone is alone
    assert wait.line == Line(Cause(cause), "k")
