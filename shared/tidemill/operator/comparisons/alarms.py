"""Alarms: whether they notify, whom, and above which threshold. Composite alarms too."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from tidemill.aws import clients
from tidemill.aws.clients import AWS_ERRORS, translated
from tidemill.domain.errors import MissingResourceError, TidemillError
from tidemill.operator.comparisons.comparison import Found, OwnSettings, picked
from tidemill.operator.drift.expected_resource import Expected, Kind

SETTINGS: Final = (
    "ActionsEnabled",
    "AlarmActions",
    "AlarmRule",
    "ComparisonOperator",
    "DatapointsToAlarm",
    "EvaluationPeriods",
    "OKActions",
    "Period",
    "Statistic",
    "Threshold",
    "TreatMissingData",
)
#: What both kinds of update take beside `SETTINGS`. An update resets each member that it does not name.
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html
_KEPT: Final = (
    "ActionsSuppressor",
    "ActionsSuppressorExtensionPeriod",
    "ActionsSuppressorWaitPeriod",
    "AlarmDescription",
    "AlarmName",
    "Dimensions",
    "EvaluateLowSampleCountPercentile",
    "ExtendedStatistic",
    "InsufficientDataActions",
    "MetricName",
    "Metrics",
    "Namespace",
    "ThresholdMetricId",
    "Unit",
)
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
_LARGEST_CALL: Final = 100


class Alarms(OwnSettings):
    """Reads all alarms with these names in a few calls: CloudWatch charges by call."""

    kind: Final = Kind.ALARM
    template_types: Final = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._names = names

    def settings(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"ActionsEnabled": True, **picked(properties, SETTINGS)}

    def read(self, expected: Expected) -> Found:
        if isinstance(self._described, Exception):
            raise self._described
        found = self._described.get(str(expected.physical_id))
        if found is None:
            raise MissingResourceError(f"no alarm {expected.physical_id}")
        return Found(settings=found, description=found)

    def calls(self, names: Sequence[str]) -> Sequence[Sequence[str]]:
        return [names]

    def restore(self, expected: Expected, found: Found, names: Sequence[str]) -> None:
        # Empty members would be those of another kind of alarm.
        whole = {name: value for name, value in found.description.items() if name in (*SETTINGS, *_KEPT)}
        wanted = {name: value for name, value in whole.items() if value not in (None, [], "")} | {
            name: expected.settings[name] for name in names
        }
        client: Any = clients.cloudwatch()
        with translated():
            if "AlarmRule" in expected.settings:
                client.put_composite_alarm(**wanted)
            else:
                client.put_metric_alarm(**wanted)

    @cached_property
    def _described(self) -> Mapping[str, Mapping[str, Any]] | Exception:
        """By name. The error, if a call failed: the same call for the next alarm would fail too."""
        found: dict[str, Mapping[str, Any]] = {}
        client: Any = clients.cloudwatch()
        try:
            for start in range(0, len(self._names), _LARGEST_CALL):
                with translated():
                    page = client.describe_alarms(
                        AlarmNames=self._names[start : start + _LARGEST_CALL],
                        AlarmTypes=["MetricAlarm", "CompositeAlarm"],
                        MaxRecords=_LARGEST_CALL,
                    )
                for alarm in (*page.get("MetricAlarms", ()), *page.get("CompositeAlarms", ())):
                    found[alarm["AlarmName"]] = alarm
        except (TidemillError, *AWS_ERRORS) as error:
            return error
        return found
