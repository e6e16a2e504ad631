"""The times of a submission, around the end of daylight saving time."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from tests.support.builders import a_job_type
from tidemill.application.features.submit_features import RULES
from tidemill.application.submission.validation import faults
from tidemill.domain.submission.submission import Submission

NEW_YORK = ZoneInfo("America/New_York")


def _at_night(minute: int, *, fold: int) -> datetime:
    """Between 1 and 2, which the clocks of New York show twice in this night: `fold` is 1 for the second time."""
    return datetime(2026, 11, 1, 1, minute, tzinfo=NEW_YORK, fold=fold)


@pytest.mark.parametrize("zone", [NEW_YORK, UTC, timezone(timedelta(hours=-5))])
@pytest.mark.parametrize(
    ("run_at", "deadline", "paths"),
    [
        (_at_night(30, fold=1), _at_night(45, fold=0), ["/deadline"]),
        (_at_night(45, fold=0), _at_night(30, fold=1), []),
        (_at_night(30, fold=0), _at_night(30, fold=1), []),
        (_at_night(30, fold=1), _at_night(30, fold=0), ["/deadline"]),
        (_at_night(30, fold=0), _at_night(45, fold=0), []),
        (None, _at_night(30, fold=1), []),
    ],
)
def test_the_times_of_a_submission_are_compared_in_utc(
    run_at: datetime | None, deadline: datetime, paths: list[str], zone: tzinfo
) -> None:
    asked = Submission(type="test.job", run_at=run_at and run_at.astimezone(zone), deadline=deadline.astimezone(zone))
    found_paths = [
        fault.path for fault in faults(asked, a_job_type(), now=datetime(2026, 10, 31, 12, tzinfo=UTC), rules=RULES)
    ]
    assert found_paths == paths
