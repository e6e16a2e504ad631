"""The tables of the AWS documentation about missing data.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
"""

from typing import Final

import pytest

from tidemill.local.alarms.definition import Missing, State
from tidemill.local.alarms.evaluation import judge

OK, ALARM, NO_DATA = State.OK, State.ALARM, State.INSUFFICIENT_DATA
#: The alarm keeps its state.
SAME: Final = None
POINTS: Final = {"0": False, "X": True, "-": None}

#: Columns: the five data points of the evaluation range, then the state for each treatment of missing data.
THREE_OF_THREE: Final = [
    ("0 - X - X", OK, OK, OK, OK),
    ("0 - - - -", OK, OK, OK, OK),
    ("- - - - -", NO_DATA, SAME, ALARM, OK),
    ("0 X X - X", ALARM, ALARM, ALARM, ALARM),
    ("- - X - -", ALARM, SAME, ALARM, OK),
    ("- - - - X", NO_DATA, SAME, ALARM, OK),
    ("X - - - -", ALARM, SAME, ALARM, OK),
]
TWO_OF_THREE: Final = [
    ("0 - X - X", ALARM, ALARM, ALARM, ALARM),
    ("0 0 X 0 X", ALARM, ALARM, ALARM, ALARM),
    ("0 - X - -", OK, OK, ALARM, OK),
    ("- - - - 0", OK, OK, ALARM, OK),
    ("- - - X -", ALARM, SAME, ALARM, OK),
    ("- - - - X", NO_DATA, SAME, ALARM, OK),
]


@pytest.mark.parametrize("current", State)
@pytest.mark.parametrize(
    ("m", "points", "missing", "ignore", "breaching", "not_breaching"),
    [(3, *row) for row in THREE_OF_THREE] + [(2, *row) for row in TWO_OF_THREE],
)
def test_missing_data_is_treated_as_the_documentation_says(  # noqa: PLR0917 - a row of the table
    m: int,
    points: str,
    missing: State | None,
    ignore: State | None,
    breaching: State | None,
    not_breaching: State | None,
    current: State,
) -> None:
    expected = {
        Missing.MISSING: missing,
        Missing.IGNORE: ignore,
        Missing.BREACHING: breaching,
        Missing.NOT_BREACHING: not_breaching,
    }
    for treatment, state in expected.items():
        found = judge([POINTS[each] for each in points.split()], n=3, m=m, missing=treatment, current=current)
        assert found == (current if state is SAME else state), treatment


def test_the_figure_of_the_documentation_about_three_of_three() -> None:
    """Periods three to five are above the threshold, and so is the ninth."""
    breaching = [False, False, True, True, True, False, False, False, True, False]
    states = [
        judge(breaching[max(0, end - 5) : end], n=3, m=3, missing=Missing.MISSING, current=OK)
        for end in range(3, len(breaching) + 1)
    ]
    assert states == [OK, OK, ALARM, OK, OK, OK, OK, OK]


def test_a_single_old_point_counts_although_it_is_older_than_n_periods() -> None:
    assert judge([True, None, None], n=1, m=1, missing=Missing.NOT_BREACHING, current=OK) is ALARM
    assert judge([False, None, None], n=1, m=1, missing=Missing.BREACHING, current=ALARM) is OK
