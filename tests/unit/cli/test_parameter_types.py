"""Times of the command line: an end is ahead."""

from datetime import UTC, datetime

import click
import pytest

from tidemill.cli.parameter_types import DURATION, JOB_ID, TIMESTAMP, TIMESTAMP_OR_AGE, UNTIL
from tidemill.system import clock


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2h", "2030-01-01T15:30:00+00:00"),
        ("14:00", "2030-01-01T14:00:00+00:00"),
        ("13:30", "2030-01-02T13:30:00+00:00"),
        ("00:15", "2030-01-02T00:15:00+00:00"),
        ("2030-01-01T16:00:00+02:00", "2030-01-01T14:00:00+00:00"),
    ],
)
def test_an_end_is_a_duration_a_time_of_the_day_or_a_timestamp(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    monkeypatch.setattr(clock, "now", lambda: datetime(2030, 1, 1, 13, 30, tzinfo=UTC))

    assert UNTIL.convert(text, None, None).isoformat() == expected


@pytest.mark.parametrize("text", ["24:00", "9:00", "soon", "2030-01-01T16:00:00"])
def test_another_text_is_refused_as_an_end(text: str) -> None:
    with pytest.raises(click.BadParameter):
        UNTIL.convert(text, None, None)


@pytest.mark.parametrize("type_", [DURATION, TIMESTAMP_OR_AGE, UNTIL])
@pytest.mark.parametrize("text", ["999999999d", "9999999d", "999999999h", "36501d"])
def test_a_duration_beyond_the_calendar_is_refused(type_: click.ParamType[object], text: str) -> None:
    with pytest.raises(click.BadParameter, match=f"invalid duration '{text}': at most 36500d"):
        type_.convert(text, None, None)


@pytest.mark.parametrize("type_", [DURATION, TIMESTAMP_OR_AGE, UNTIL])
def test_a_century_is_a_duration(type_: click.ParamType[object]) -> None:
    assert type_.convert("36500d", None, None)


@pytest.mark.parametrize("type_", [TIMESTAMP, TIMESTAMP_OR_AGE, UNTIL])
@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_a_timestamp_that_no_clock_shows_in_utc_is_refused(type_: click.ParamType[object], text: str) -> None:
    with pytest.raises(click.BadParameter, match="it lies outside of the years 1 to 9999 in UTC"):
        type_.convert(text, None, None)


def test_an_id_may_be_in_upper_case() -> None:
    assert JOB_ID.convert("0193ABCD-EF", None, None) == "0193abcd-ef"
