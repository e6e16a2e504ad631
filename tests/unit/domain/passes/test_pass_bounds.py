"""The bounds of reconcile: by documents, their size and the rate."""

from datetime import timedelta

import pytest

from tidemill.domain.passes.pass_bounds import pass_duration, read_units

MINUTE = timedelta(minutes=1)


def duration(documents: int, units_per_second: float) -> timedelta:
    return pass_duration(
        documents=documents, bytes_each=1024, units_per_second=units_per_second, run=14 * MINUTE, pause=5 * MINUTE
    )


@pytest.mark.parametrize(
    ("documents", "units"), [(0, 0), (8, 1), (104_000_000, 13_000_000), (1_000_000_000, 125_000_000)]
)
def test_eight_documents_of_a_kilobyte_cost_a_read_unit(documents: int, units: float) -> None:
    assert read_units(documents=documents, bytes_each=1024) == units


def test_the_duration_is_the_reading_and_the_pauses_between_runs() -> None:
    assert duration(0, 1000) == 5 * MINUTE
    # 14 minutes of reading fill one run.
    assert duration(8 * 14 * 60 * 1000 - 1, 1000) < 19 * MINUTE + timedelta(seconds=1)
    # Forty jobs a second for thirty days: 216 minutes of reading, in 16 runs.
    assert duration(104_000_000, 1000) == timedelta(seconds=13_000) + 16 * 5 * MINUTE
    assert timedelta(hours=34) < duration(1_000_000_000, 1000) < timedelta(hours=48)


def test_the_price_is_the_same_at_any_rate_and_only_the_duration_changes() -> None:
    assert duration(1_000_000_000, 4000) < duration(1_000_000_000, 1000) / 3.9
