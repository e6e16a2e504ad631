"""The wall clock."""

from datetime import UTC, datetime, timedelta

from tidemill.system import clock


def test_the_present_has_the_precision_of_a_document() -> None:
    present = clock.now()

    assert present.tzinfo is UTC
    assert present.microsecond % 1000 == 0
    assert timedelta(0) <= datetime.now(UTC) - present < timedelta(minutes=1)
