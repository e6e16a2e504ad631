"""The alarms on job types: broken job files, and types whose jobs need many attempts."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from tidemill.cdk.alarms import alarm_metrics as metrics
from tidemill.cdk.alarms.alarm import ONCE, ONCE_BOUND, Alarm, Entry, Heading
from tidemill.cdk.config import StageConfig
from tidemill.metrics import Metric
from tidemill.names import OTHER_TYPES

#: Above it, a type or what it calls has a fault: most attempts succeed.
MOST_ATTEMPTS: Final = 1.5


def job_file_alarm(config: StageConfig) -> Alarm:
    """No page: while users are refused, `FailedSubmissions` is one."""
    return Alarm(
        id="BrokenJobFiles",
        heading=Heading.BROKEN_JOB_FILE,
        meaning="A function cannot load a deployed job file, so the jobs of its types wait.",
        metric=metrics.over_lanes(config, Metric.BROKEN_JOB_FILES),
        m_of_n=ONCE,
        within=ONCE_BOUND,
    )


def type_alarms(types: Sequence[str], *, config: StageConfig) -> Iterator[Entry]:
    """Make the alarms of the types that have metrics of their own, and of the others together."""
    for name in (*types, OTHER_TYPES):
        yield repeated_runs(f"of type {name}", id_=f"Type-{name}", config=config, type=name)


def repeated_runs(of: str, *, id_: str, config: StageConfig, **dimension: str) -> Alarm:
    return Alarm(
        id=f"RepeatedRuns-{id_}",
        heading=Heading.REPEATED_RUNS,
        meaning=f"Jobs {of} need more than {MOST_ATTEMPTS:g} attempts each, on average, to succeed.",
        metric=metrics.attempts_per_success(config, **dimension),
        above=MOST_ATTEMPTS,
        # A fault of a quarter of an hour passes by itself.
        m_of_n=(2, 2),
        within=timedelta(minutes=50),
    )
