"""The next time of a schedule expression."""

from datetime import UTC, datetime, timedelta

import pytest

from tidemill.domain.schedule_times import next_time, period

#: A Thursday.
AFTER = datetime(2026, 1, 1, 3, 0, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("cron(0 3 * * ? *)", "2026-01-02T03:00"),
        ("cron(1 3 * * ? *)", "2026-01-01T03:01"),
        ("cron(0/15 * * * ? *)", "2026-01-01T03:15"),
        ("cron(*/20 4-6 * * ? *)", "2026-01-01T04:00"),
        ("cron(30 1,23 * * ? *)", "2026-01-01T23:30"),
        ("cron(0 0 1 * ? *)", "2026-02-01T00:00"),
        ("cron(0 0 29 2 ? *)", "2028-02-29T00:00"),
        ("cron(0 9 ? * MON-FRI *)", "2026-01-01T09:00"),
        ("cron(0 9 ? * 1 *)", "2026-01-04T09:00"),
        ("cron(0 9 ? JUL,aug SAT *)", "2026-07-04T09:00"),
        ("cron(0 9 1 1 ? 2027)", "2027-01-01T09:00"),
        # Each range to both of its ends.
        ("cron(0-59 3 * * ? *)", "2026-01-01T03:01"),
        ("cron(59/30 3 * * ? *)", "2026-01-01T03:59"),
        ("cron(59 0/23 * * ? *)", "2026-01-01T23:59"),
        ("cron(0 0 31/3 * ? *)", "2026-01-31T00:00"),
        ("cron(0 0 1 12/5 ? *)", "2026-12-01T00:00"),
        ("cron(0 0 ? * 7/2 *)", "2026-01-03T00:00"),
        ("cron(0 0 1 1 ? 2030/100)", "2030-01-01T00:00"),
        ("cron(5-9/4 4 * * ? *)", "2026-01-01T04:05"),
        ("cron(9,5/50 4 * * ? *)", "2026-01-01T04:05"),
        ("cron(? ? ? ? ? ?)", "2026-01-01T03:01"),
        ("cron(* * 31 4,dec * *)", "2026-12-31T00:00"),
        ("cron(0 0 */2 * ? *)", "2026-01-03T00:00"),
        ("cron(0 0 1 1 ? */4)", "2030-01-01T00:00"),
        ("cron(0 9 ? * SUN *)", "2026-01-04T09:00"),
        ("cron(0 9 ? * SAT *)", "2026-01-03T09:00"),
        # A range that turns over.
        ("cron(0 22-4 * * ? *)", "2026-01-01T04:00"),
        ("cron(30 5-2 * * ? *)", "2026-01-01T05:30"),
        ("cron(0 22-4/3 * * ? *)", "2026-01-01T04:00"),
        ("cron(50-10/10 4 * * ? *)", "2026-01-01T04:00"),
        ("cron(0 9 ? * FRI-MON *)", "2026-01-02T09:00"),
        ("cron(0 0 1 DEC-FEB ? *)", "2026-02-01T00:00"),
    ],
)
def test_the_next_time_of_a_cron_expression(expression: str, expected: str) -> None:
    assert next_time(expression, after=AFTER) == datetime.fromisoformat(f"{expected}:00+00:00")


def test_the_last_hour_of_a_day_is_followed_by_the_first_of_the_next() -> None:
    assert next_time("cron(0 * * * ? *)", after=AFTER.replace(hour=23)) == datetime(2026, 1, 2, tzinfo=UTC)


def test_a_time_is_not_its_own_next_time() -> None:
    at = AFTER.replace(second=0)

    assert next_time("cron(0 3 * * ? *)", after=at) == at + timedelta(days=1)


@pytest.mark.parametrize(
    "expression",
    ["rate(1 hour)", "cron(0 9 L * ? *)", "cron(0 9 ? * 2#1 *)", "cron(0 9 1 1 ? 2020)", "cron(0 0 30 2 ? *)"],
)
def test_some_expressions_have_no_known_next_time(expression: str) -> None:
    assert next_time(expression, after=AFTER) is None


def test_a_rate_has_a_period() -> None:
    assert period("rate(1 minute)") == timedelta(minutes=1)
    assert period("rate(12 hours)") == timedelta(hours=12)
    assert period("rate(3 days)") == timedelta(days=3)
    assert period("cron(0 3 * * ? *)") is None
