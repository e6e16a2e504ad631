"""The pauses of a batch or a flow that was cancelled as a whole."""

from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.domain.batches.composite_cancels import CANCELLED, cancelled_at, is_cancelled, pause_of_cancelled
from tidemill.domain.waiting.signals import Signal

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("since", "pause"),
    [
        (-SECOND, 5 * SECOND),
        (timedelta(0), 5 * SECOND),
        (20 * SECOND, 5 * SECOND),
        (24 * SECOND, 6 * SECOND),
        (HOUR, 15 * MINUTE),
        (9 * HOUR, 15 * MINUTE),
    ],
)
def test_a_quarter_of_the_time_since_the_cancel_passes_between_two_looks(since: timedelta, pause: timedelta) -> None:
    whole = a_job(signals=(Signal(name=CANCELLED, at=NOW, data="true"),))

    assert pause_of_cancelled(whole, jobs=1_800, now=NOW + since) == pause
    assert pause_of_cancelled(whole, jobs=10_000, now=NOW + 24 * HOUR) == 5_000 * SECOND


def test_only_the_signal_of_that_name_cancels() -> None:
    whole = a_job(signals=(Signal(name="closed", at=NOW, data="true"),))

    assert (is_cancelled(whole), cancelled_at(whole)) == (False, None)
