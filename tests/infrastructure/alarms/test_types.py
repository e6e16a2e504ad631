"""Where types have metrics of their own, each of them has an alarm on the attempts that its jobs need."""

from collections.abc import Callable
from typing import Final

import pytest

from tests.infrastructure.alarms.faults import BEGIN, MINUTES, Fault
from tests.infrastructure.alarms.installation import STAGE, Installation
from tests.infrastructure.alarms.test_faults import seconds_until
from tests.infrastructure.alarms.traces import Trace
from tests.infrastructure.conftest import Synthesise
from tidemill.cdk.alarms.alarm import Severity
from tidemill.local.alarms import MetricKey
from tidemill.metrics import METRIC_NAMESPACE, Metric

#: The first two types of the app by name. The third one, and the canary, have none.
TYPES: Final = {"click.enrich": "RepeatedRunsTypeclickenrich", "clicks.export": "RepeatedRunsTypeclicksexport"}
OTHER: Final = {"other": "RepeatedRunsTypeother"}


@pytest.fixture(scope="module")
def by_type(catalogue_of: Callable[..., Installation]) -> Installation:
    return catalogue_of(metrics_by_type="2")


def _repeated(name: str, attempts: float) -> Callable[[Trace], None]:
    key = MetricKey(METRIC_NAMESPACE, Metric.ATTEMPTS, (("stage", STAGE), ("type", name)))

    def change(trace: Trace) -> None:
        for minute in range(BEGIN - 60, MINUTES.stop):
            trace.put(key, minute, 1.0 if minute <= BEGIN else attempts)

    return change


def test_the_first_types_by_name_and_the_others_have_one_each(by_type: Installation) -> None:
    alarms = {name for name in by_type.entries if name.startswith("RepeatedRunsType")}
    assert alarms == set((TYPES | OTHER).values())
    assert {by_type.entries[name].severity for name in alarms} == {Severity.TICKET}


@pytest.mark.parametrize(("name", "alarm"), (TYPES | OTHER).items())
def test_a_type_whose_jobs_need_two_attempts_fires_its_alarm(by_type: Installation, name: str, alarm: str) -> None:
    fault = Fault(alarm, "every job fails once", _repeated(name, 2.0))
    assert seconds_until(by_type, fault, alarm) <= by_type.entries[alarm].within.total_seconds()


def test_a_type_whose_jobs_seldom_need_a_second_attempt_fires_none(by_type: Installation) -> None:
    alarm = TYPES["clicks.export"]
    with pytest.raises(AssertionError, match="never fired"):
        seconds_until(by_type, Fault(alarm, "", _repeated("clicks.export", 1.4)), alarm)


def test_a_stage_without_metrics_by_type_has_none(synthesise: Synthesise) -> None:
    assert "RepeatedRunsType" not in str(synthesise(stage="dev").pipeline)
