"""The alarms on error budgets: submissions that fail and critical jobs that start late, in two windows of a rate."""

from collections.abc import Iterator
from datetime import timedelta

from tidemill.application.operations.objectives import SLOW_BURN, Burn, Objective
from tidemill.cdk.alarms import alarm_metrics as metrics
from tidemill.cdk.alarms.alarm import Alarm, Composite, Entry, Heading, Severity
from tidemill.cdk.config import StageConfig
from tidemill.cdk.job_api import JobApi


def slow_burn(api: JobApi, *, config: StageConfig) -> Iterator[Entry]:
    yield from burn_parts(api, SLOW_BURN, config=config)
    yield Composite(
        id="SlowBurn",
        heading=Heading.SPENT_BUDGET,
        meaning="Submissions fail, or critical jobs start late: the monthly error budget would be spent in five days.",
        any_of=(windows("FailedSubmissions", SLOW_BURN), windows("LateStarts", SLOW_BURN)),
        objective=Objective.SUBMISSIONS,
        # Until one failure in sixty has filled a quarter of the long window. A page reports what fails faster.
        within=timedelta(hours=3),
    )


def burn_parts(api: JobApi, burn: Burn, *, config: StageConfig) -> Iterator[Entry]:
    for window in (burn.short, burn.long):
        minutes = _minutes(window)
        yield Alarm(
            id=part_id("FailedSubmissions", window),
            heading=Heading.FAILED_SUBMISSIONS,
            meaning=f"More than {burn.bad_percent} % of the submissions of {minutes} minutes failed.",
            metric=metrics.failed_submissions(config, api.submit, window),
            above=burn.bad_percent,
            severity=Severity.PART,
        )
        yield Alarm(
            id=part_id("LateStarts", window),
            heading=Heading.LATE_STARTS,
            meaning=f"More than {burn.bad_percent} % of the critical runs of {minutes} minutes started late.",
            metric=metrics.late_starts(config, window),
            above=burn.bad_percent,
            severity=Severity.PART,
        )


def windows(name: str, burn: Burn) -> tuple[str, ...]:
    """The ids of the parts of a composite."""
    return tuple(part_id(name, window) for window in (burn.short, burn.long))


def part_id(name: str, window: timedelta) -> str:
    return f"{name}-{_minutes(window)}m"


def _minutes(window: timedelta) -> int:
    return window // timedelta(minutes=1)
