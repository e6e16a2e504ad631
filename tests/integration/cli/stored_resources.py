"""Stand in for the clients of CloudWatch and SQS. Moto has neither composite alarms nor redrive allow policies."""

from collections.abc import Mapping, Sequence
from typing import Any


class StoredAlarms:
    """An update replaces the whole alarm."""

    def __init__(self) -> None:
        self._metric: dict[str, dict[str, Any]] = {}
        self._composite: dict[str, dict[str, Any]] = {}

    def put_metric_alarm(self, *, AlarmName: str, **members: Any) -> None:  # noqa: N803 - the name in the API
        self._metric[AlarmName] = {"AlarmName": AlarmName, "ActionsEnabled": True, "StateValue": "OK", **members}

    def put_composite_alarm(self, *, AlarmName: str, **members: Any) -> None:  # noqa: N803 - the name in the API
        self._composite[AlarmName] = {"AlarmName": AlarmName, "ActionsEnabled": True, "StateValue": "OK", **members}

    def describe_alarms(self, *, AlarmNames: Sequence[str], **_: Any) -> Mapping[str, Any]:  # noqa: N803 - as above
        return {
            kind: [alarm for name, alarm in alarms.items() if name in AlarmNames]
            for kind, alarms in (("MetricAlarms", self._metric), ("CompositeAlarms", self._composite))
        }


class StoredQueues:
    """SQS removes an attribute that is set to an empty text."""

    def __init__(self) -> None:
        self._queues: dict[str, dict[str, str]] = {}

    def set_queue_attributes(self, *, QueueUrl: str, Attributes: Mapping[str, str]) -> None:  # noqa: N803 - as above
        self._queues.setdefault(QueueUrl, {}).update(Attributes)

    def get_queue_attributes(self, *, QueueUrl: str, AttributeNames: Sequence[str]) -> Mapping[str, Any]:  # noqa: N803
        attributes = self._queues.get(QueueUrl, {})
        found = {name: value for name, value in attributes.items() if value and name in AttributeNames}
        return {"Attributes": found} if found else {}
