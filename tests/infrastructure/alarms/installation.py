"""The alarms of the synthesised app, their entries in the catalogue, and the metrics that they read, by plain names."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.infrastructure.conftest import Synthesised
from tidemill.cdk.alarms.alarm import Entry
from tidemill.local.alarms import CompositeAlarm, MetricAlarm, MetricKey, read_alarms
from tidemill.metrics import METRIC_NAMESPACE, Metric
from tidemill.names import Lane

STAGE: Final = "dev"


@dataclass(frozen=True)
class Installation:
    alarms: list[MetricAlarm | CompositeAlarm]
    #: By the name of the alarm.
    entries: dict[str, Entry]

    @property
    def metrics(self) -> set[MetricKey]:
        """All metrics that an alarm reads."""
        return {query.metric for alarm in self.alarms if isinstance(alarm, MetricAlarm) for query in alarm.queries}


def read_installation(app: Synthesised, entries: list[tuple[str, Entry]]) -> Installation:
    """`entries` are those of each stack, with the name of the stack."""
    alarms = [
        alarm
        for stack, template in (("", app.pipeline), ("Shortener", app.shortener))
        for alarm in read_alarms(template["Resources"], resolve=partial(plain, stack))
    ]
    return Installation(alarms, {plain(stack, entry.id): entry for stack, entry in entries})


def plain(stack: str, id_: str) -> str:
    """The logical id without the hash at its end, or the id in the catalogue without the characters that CDK drops."""
    return stack + re.sub(r"[0-9A-F]{8}$|[^0-9A-Za-z]", "", id_)


def ours(metric: Metric | str, lane: Lane = Lane.DEFAULT) -> MetricKey:
    return MetricKey(METRIC_NAMESPACE, str(metric), (("lane", lane.value), ("stage", STAGE)))


def of_function(metric: str, function: str) -> MetricKey:
    return MetricKey("AWS/Lambda", metric, (("FunctionName", f"{function}Function"),))


def worker(lane: Lane) -> str:
    return f"Lane{lane}Worker"


def of_queue(metric: str, queue: str) -> MetricKey:
    return MetricKey("AWS/SQS", metric, (("QueueName", queue),))


def of_api(api: str = "Api") -> MetricKey:
    return MetricKey("AWS/ApiGateway", "5xx", (("ApiId", api),))


def of_topic(metric: str) -> MetricKey:
    return MetricKey("AWS/SNS", metric, (("TopicName", "AlarmsTopic"),))


CONCURRENCY: Final = MetricKey(
    "AWS/Usage",
    "ResourceCount",
    (("Class", "None"), ("Resource", "ConcurrentExecutions"), ("Service", "Lambda"), ("Type", "Resource")),
)
#: The quota of the account.
CONCURRENCY_QUOTA: Final = 1000
