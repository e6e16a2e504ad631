"""Which schedule expressions are valid, and their next time."""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.domain.waiting.schedule_times import Cron, Rate, parse

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
        ("cron(0 0 1 1 ? 2030/100)", "2030-01-01T00:00"),
        ("cron(5-9/4 4 * * ? *)", "2026-01-01T04:05"),
        ("cron(9,5/50 4 * * ? *)", "2026-01-01T04:05"),
        ("cron(* * ? * * *)", "2026-01-01T03:01"),
        ("cron(* * 31 4,dec ? *)", "2026-12-31T00:00"),
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
    assert _next(expression) == datetime.fromisoformat(f"{expected}:00+00:00")


def test_the_last_hour_of_a_day_is_followed_by_the_first_of_the_next() -> None:
    assert _next("cron(0 * * * ? *)", after=AFTER.replace(hour=23)) == datetime(2026, 1, 2, tzinfo=UTC)


def test_a_time_is_not_its_own_next_time() -> None:
    at = AFTER.replace(second=0)

    assert _next("cron(0 3 * * ? *)", after=at) == at + timedelta(days=1)


def test_times_are_in_utc_also_where_the_clock_is_changed() -> None:
    """The night in which New York leaves out the hour from 2 to 3."""
    after = datetime(2026, 3, 8, 1, 59, tzinfo=ZoneInfo("America/New_York"))
    assert _next("cron(30 7 * * ? *)", after=after) == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # The example of AWS: the last Friday of each month in the years 2022 to 2023.
        ("cron(15 10 ? * 6L 2026-2027)", "2026-01-30T10:15"),
        ("cron(0 9 L * ? *)", "2026-01-31T09:00"),
        ("cron(0 9 L 2 ? *)", "2026-02-28T09:00"),
        ("cron(0 9 ? * L *)", "2026-01-03T09:00"),
        ("cron(0 9 ? * 3#2 *)", "2026-01-13T09:00"),
        ("cron(0 9 ? * MON#5 *)", "2026-03-30T09:00"),
        # The fourth is a Sunday, the third and the 31st a Saturday; the first of February a Sunday.
        ("cron(0 9 4W * ? *)", "2026-01-05T09:00"),
        ("cron(0 9 3W * ? *)", "2026-01-02T09:00"),
        ("cron(0 9 31W * ? *)", "2026-01-30T09:00"),
        ("cron(0 9 1W 2 ? *)", "2026-02-02T09:00"),
        ("cron(0 9 1W 8 ? *)", "2026-08-03T09:00"),
        ("cron(0 9 31W 5 ? *)", "2026-05-29T09:00"),
        ("cron(0 9 15W * ? *)", "2026-01-15T09:00"),
        ("cron(0 0 29 2 ? 2096-2199)", "2096-02-29T00:00"),
    ],
)
def test_the_last_day_the_nearest_weekday_and_the_nth_weekday_of_a_month(expression: str, expected: str) -> None:
    assert _next(expression) == datetime.fromisoformat(f"{expected}:00+00:00")


@pytest.mark.parametrize("expression", ["cron(0 9 1 1 ? 2020)", "cron(0 3 1 1 ? 2026)", "cron(* * * * ? 1970-2025)"])
def test_no_further_time_comes_after_the_last_year(expression: str) -> None:
    assert _next(expression) is None


def test_a_rate_has_a_period() -> None:
    assert parse("rate(1 minute)") == Rate(timedelta(minutes=1))
    assert parse("rate(12 hours)") == Rate(timedelta(hours=12))
    assert parse("rate(3 days)") == Rate(timedelta(days=3))


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "hourly",
        "rate(0 hours)",
        "rate(1 hours)",
        "rate(2 hour)",
        "rate(1 second)",
        "rate(-1 hours)",
        "rate( 1 hour )",
        "rate(٢ hours)",
        "rate(1 hour)\n",
        "at(2026-01-01T00:00:00)",
        "cron(0 3 * * ?)",
        "cron(0  3 * * ? *)",
        "0 3 * * *",
    ],
)
def test_another_form_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match=rf"^invalid schedule {re.escape(repr(expression))}: use a form such as rate"):
        parse(expression)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("60 3 * * ? *", "the field minutes is '60', and it takes 0 to 59"),
        ("٣ 3 * * ? *", "the field minutes is '٣', and it takes 0 to 59"),
        ("*/0 3 * * ? *", "the field minutes is '*/0', and it takes 0 to 59 with , - * /; after / a step of 1 to 59"),
        ("0/60 3 * * ? *", "after / a step of 1 to 59"),
        ("1/ 3 * * ? *", "after / a step of 1 to 59"),
        ("5- 3 * * ? *", "the field minutes is '5-'"),
        ("5,,6 3 * * ? *", "the field minutes is '5,,6'"),
        ("*-5 3 * * ? *", "the field minutes is '*-5'"),
        ("? 3 * * ? *", "the field minutes is '?'"),
        ("0 24 * * ? *", "the field hours is '24', and it takes 0 to 23"),
        ("0 0/24 * * ? *", "after / a step of 1 to 23"),
        ("0 3 32 * ? *", "the field day of month is '32', and it takes 1 to 31"),
        ("0 3 0 * ? *", "the field day of month is '0'"),
        ("0 3 L-3 * ? *", "the field day of month is 'L-3'"),
        ("0 3 LW * ? *", "the field day of month is 'LW'"),
        ("0 3 W * ? *", "the field day of month is 'W'"),
        ("0 3 1W,15W * ? *", "the field day of month is '1W,15W'"),
        ("0 3 1,L * ? *", "the field day of month is '1,L'"),
        ("0 3 * 13 ? *", "the field month is '13', and it takes 1 to 12 or JAN to DEC"),
        ("0 3 * JANUARY ? *", "the field month is 'JANUARY'"),
        ("0 3 * 0 ? *", "the field month is '0'"),
        ("0 3 ? * 0 *", "the field day of week is '0', and it takes 1 to 7 or SUN to SAT"),
        ("0 3 ? * 8 *", "the field day of week is '8'"),
        ("0 3 ? * MON-FRIDAY *", "the field day of week is 'MON-FRIDAY'"),
        ("0 3 ? * 2/2 *", "the field day of week is '2/2'"),
        ("0 3 ? * 2#6 *", "or one day with L or #1 to #5"),
        ("0 3 ? * 2#0 *", "the field day of week is '2#0'"),
        ("0 3 ? * 8#1 *", "the field day of week is '8#1'"),
        # AWS: only one expression with # in the field.
        ("0 3 ? * 3#1,6#3 *", "the field day of week is '3#1,6#3'"),
        ("0 3 ? * 8L *", "the field day of week is '8L'"),
        ("0 3 ? * 2L,3 *", "the field day of week is '2L,3'"),
        ("0 3 * * ? 1969", "the field year is '1969', and it takes 1970 to 2199"),
        ("0 3 * * ? 2200", "the field year is '2200'"),
        ("0 3 * * ? 2030-2020", "the field year is '2030-2020'"),
        ("0 3 * * * *", "use ? for either the day of the month or the day of the week, not both"),
        ("0 3 ? * ? *", "use ? for either"),
        ("0 3 1 * 1 *", "use ? for either"),
        ("0 3 ?,1 * ? *", "the field day of month is"),
        ("0 3 31 2 ? *", "no month of these years has such a day"),
        ("0 3 31 4,JUN,9,NOV ? *", "no month of these years has such a day"),
        ("0 3 29 2 ? 2100", "no month of these years has such a day"),
        ("0 3 31W 2 ? *", "no month of these years has such a day"),
        ("0 3 ? 2 1#5 2026-2027", "no month of these years has such a day"),
    ],
)
def test_a_cron_expression_is_refused_with_the_field_and_its_range(fields: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"invalid schedule {f'cron({fields})'!r}: ")) as refused:
        parse(f"cron({fields})")
    assert message in str(refused.value)


@pytest.mark.parametrize("first", ["0", "00", "59", "0-59", "*/59", "5,7-9,40/10"])
def test_the_ends_of_each_range_are_accepted(first: str) -> None:
    for fields in ("0 0 1 1 ? 1970", "23 23 31 12 ? 2199", "0-23 */23 1/31 JAN/12 ? 1970/230", "0 0 ? * SUN-SAT *"):
        assert isinstance(parse(f"cron({first} {fields.partition(' ')[2]})"), Cron)


#: How far ahead a test compares each minute.
_LOOK = timedelta(hours=5)


def _field(first: int, last: int, *names: str, others: str) -> st.SearchStrategy[str]:
    """Mostly valid, with each wildcard of any field and numbers of others."""
    value = st.one_of(st.integers(first, last).map(str), st.sampled_from([*names, str(last + 1), "L", "٣"]))
    part = st.one_of(
        value,
        st.just("*"),
        st.builds("{}-{}".format, value, value),
        st.builds("{}/{}".format, value, st.integers(0, 9)),
    )
    lists = st.lists(part, min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), value, lists, st.sampled_from(others.split()))


_DAY = _field(1, 31, others="L 1W 15W 31W 32W LW")
_WEEKDAY = _field(1, 7, "MON", "SAT", others="L 6L TUE#2 1#5 1#6")
_ANY = st.just("?")


@given(
    times=st.tuples(_field(0, 59, others="*/7 */0"), _field(0, 23, others="*/7 */24")),
    days=st.one_of(st.tuples(_DAY, _ANY), st.tuples(_ANY, _WEEKDAY), st.tuples(_DAY, _WEEKDAY)),
    month=_field(1, 12, "FEB", "feb", others="2 FEB,4"),
    year=_field(1970, 2199, others="2026 2000 2100 2096-2199"),
    later=st.timedeltas(timedelta(0), timedelta(days=63_000)),
)
def test_an_accepted_expression_has_a_next_time_or_says_that_none_comes(
    times: tuple[str, str], days: tuple[str, str], month: str, year: str, later: timedelta
) -> None:
    after = AFTER + later
    try:
        cron = parse(f"cron({' '.join(times)} {days[0]} {month} {days[1]} {year})")
    except ValueError as error:
        assert str(error).startswith("invalid schedule 'cron(")  # noqa: PT017 - most of these are refused
        return
    assert isinstance(cron, Cron)

    found = cron.next_time(after=after)

    assert found is None or (found > after and _fits(cron, found))
    # No earlier time fits, as far as a test can look.
    minute = after.replace(second=0, microsecond=0)
    end = min(found or after + _LOOK, after + _LOOK)
    while (minute := minute + timedelta(minutes=1)) < end:
        assert not _fits(cron, minute)
    if found is None:
        assert max(cron.years) <= after.year or _never_again(cron, after)


def _fits(cron: Cron, at: datetime) -> bool:
    day = at.day in cron.days(at.year, at.month)
    return (
        day
        and at.month in cron.months
        and at.year in cron.years
        and at.hour in cron.hours
        and at.minute in cron.minutes
    )


def _never_again(cron: Cron, after: datetime) -> bool:
    months = ((year, month) for year in cron.years if year > after.year for month in cron.months)
    return not any(day <= monthrange(*month)[1] for month in months for day in cron.days(*month))


def _next(expression: str, *, after: datetime = AFTER) -> datetime | None:
    cron = parse(expression)
    assert isinstance(cron, Cron)
    return cron.next_time(after=after)
