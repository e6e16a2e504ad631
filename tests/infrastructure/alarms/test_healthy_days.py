"""No alarm fires while nothing needs an operator."""

import pytest

from tests.infrastructure.alarms.installation import CONCURRENCY, CONCURRENCY_QUOTA, Installation
from tests.infrastructure.alarms.traces import DAY, Trace, healthy
from tidemill.local.alarms import Evaluator, State, Transition


def fired(installation: Installation, trace: Trace, *, additional_points: int = 2) -> list[Transition]:
    """The changes to ALARM of the alarms that notify a topic."""
    evaluator = Evaluator(
        installation.alarms,
        trace.series(),
        additional_points=additional_points,
        quotas={CONCURRENCY: CONCURRENCY_QUOTA},
    )
    changes = evaluator.run(0, trace.minutes)
    return [change for change in changes if change.new is State.ALARM and change.alarm.alarm_actions]


def test_every_metric_of_an_alarm_is_known_to_the_traces_or_a_sign_of_a_fault(installation: Installation) -> None:
    """So that a name that the traces misspell is noticed."""
    known = healthy(1, days=3).values.keys()
    assert not known - installation.metrics - {key for key in known if _is_only_context(key.name)}


def _is_only_context(name: str) -> bool:
    return name in {"Invocations", "JobsSucceeded", "StartLatency", "ApproximateAgeOfOldestMessage"}


def test_no_alarm_fires_in_four_healthy_days(installation: Installation) -> None:
    assert [(change.alarm.name, change.minute) for change in fired(installation, healthy(1, days=4))] == []


@pytest.mark.parametrize(("seed", "additional_points"), [(2, 0), (3, 5)])
def test_no_alarm_fires_however_many_data_points_cloudwatch_retrieves(
    installation: Installation, seed: int, additional_points: int
) -> None:
    trace = healthy(seed, days=2)
    found = fired(installation, trace, additional_points=additional_points)
    assert [(change.alarm.name, change.minute // DAY, change.minute % DAY) for change in found] == []
