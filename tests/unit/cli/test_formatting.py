"""The formats of counts, times, ages and untrusted text."""

from datetime import UTC, datetime, timedelta

import pytest

from tidemill.cli.formatting import age, count, readable_time, timestamp, visible


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (0.9, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (86_399, "23h"),
        (86_400, "1d"),
        (86_400 * 400, "400d"),
    ],
)
def test_an_age_uses_the_largest_unit_that_fits(seconds: float, text: str) -> None:
    assert age(timedelta(seconds=seconds)) == text


def test_an_absent_age_is_a_dash() -> None:
    assert age(None) == "–"  # noqa: RUF001


def test_a_count_of_one_is_singular() -> None:
    assert [count(number, "job") for number in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]


def test_times_are_in_utc_with_a_z() -> None:
    at = datetime(2026, 9, 14, 12, 0, 3, 45_000, tzinfo=UTC)
    assert readable_time(at) == "2026-09-14 12:00:03Z"
    assert timestamp(at) == "2026-09-14T12:00:03.045Z"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Zoë 漢字 🙂", "Zoë 漢字 🙂"),
        ("\x1b[2J", "\\x1b[2J"),
        ("two\nlines\ttab", "two\\nlines\\ttab"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\ud800", "\\ud800"),
    ],
)
def test_characters_that_a_terminal_would_interpret_are_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown
