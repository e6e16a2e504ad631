"""`Evaluator`: the states of a set of alarms, minute by minute, and the actions of each change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidemill.local.alarms.definition import CompositeAlarm, MetricAlarm, MetricKey, Missing, State
from tidemill.local.alarms.evaluation import ADDITIONAL_POINTS, judge
from tidemill.local.alarms.metric_math import quota_id
from tidemill.local.alarms.series import Series

_COMPARISONS: Final = {
    "GreaterThanThreshold": float.__gt__,
    "GreaterThanOrEqualToThreshold": float.__ge__,
    "LessThanThreshold": float.__lt__,
    "LessThanOrEqualToThreshold": float.__le__,
}
#: "Alarms that evaluate metrics in the AWS/DynamoDB namespace always ignore missing data":
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
_ALWAYS_IGNORES: Final = "AWS/DynamoDB"


@dataclass(frozen=True, slots=True)
class Transition:
    alarm: MetricAlarm | CompositeAlarm
    old: State
    new: State
    #: The alarm changed at the start of this minute.
    minute: int

    @property
    def actions(self) -> tuple[str, ...]:
        """Notifications are sent when the state changes, and not again while it stays."""
        return {State.ALARM: self.alarm.alarm_actions, State.OK: self.alarm.ok_actions}.get(self.new, ())


class Evaluator:
    """Alarms are evaluated at the start of each minute, over windows that end there.

    A window slides: it "advances each time the alarm is evaluated", also where the period is longer than a minute.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation-window.html
    """

    def __init__(
        self,
        alarms: Sequence[MetricAlarm | CompositeAlarm],
        data: Mapping[MetricKey, Series],
        *,
        additional_points: int = ADDITIONAL_POINTS,
        quotas: Mapping[MetricKey, float] | None = None,
    ) -> None:
        self._metric_alarms = [alarm for alarm in alarms if isinstance(alarm, MetricAlarm)]
        self._composites = [alarm for alarm in alarms if isinstance(alarm, CompositeAlarm)]
        self._quotas = quotas or {}
        self.use(data)
        self._additional_points = additional_points
        #: By alarm and first minute: the data points that no later value can change.
        self._settled: dict[str, dict[int, bool | None]] = {alarm.name: {} for alarm in self._metric_alarms}
        self.states = dict.fromkeys((alarm.name for alarm in alarms), State.INSUFFICIENT_DATA)

    def use(self, data: Mapping[MetricKey, Series]) -> None:
        """From now on, evaluate these series: the same values, and more."""
        #: By alarm: the series that it reads, each with its query.
        self._read = {
            alarm.name: [(query, series) for query in alarm.queries if (series := data.get(query.metric))]
            for alarm in self._metric_alarms
        }

    def evaluate(self, minute: int) -> list[Transition]:
        """Evaluate all alarms at the start of `minute`. Returns the changes in their order."""
        metric = [(alarm, self._judge(alarm, minute)) for alarm in self._metric_alarms]
        changes = [change for alarm, state in metric if (change := self._set(alarm, state, minute))]
        # A composite may be the child of another one, so the changes pass on until none is left.
        while passed_on := list(self._changed_composites(minute)):
            changes += passed_on
        return changes

    def run(self, first: int, end: int) -> Iterator[Transition]:
        """All changes at the minutes from `first` until before `end`."""
        for minute in range(first, end):
            yield from self.evaluate(minute)

    def _changed_composites(self, minute: int) -> Iterator[Transition]:
        for alarm in self._composites:
            state = State.ALARM if alarm.rule.holds(self.states) else State.OK
            if change := self._set(alarm, state, minute):
                yield change

    def _set(self, alarm: MetricAlarm | CompositeAlarm, state: State, minute: int) -> Transition | None:
        old, self.states[alarm.name] = self.states[alarm.name], state
        return Transition(alarm, old, state, minute) if old != state else None

    def _judge(self, alarm: MetricAlarm, minute: int) -> State:
        length = alarm.evaluation_periods + self._additional_points
        first = minute - length * alarm.period_minutes
        if all(series.is_idle(first, minute) for _, series in self._read[alarm.name]):
            points = [_breaches(alarm, alarm.math.when_idle)] * length
        else:
            points = [self._point(alarm, start, minute) for start in range(first, minute, alarm.period_minutes)]
        return judge(
            points,
            n=alarm.evaluation_periods,
            m=alarm.datapoints_to_alarm,
            missing=_missing(alarm),
            current=self.states[alarm.name],
        )

    def _point(self, alarm: MetricAlarm, first: int, now: int) -> bool | None:
        """The data point of the period that begins with minute `first`. Computed once, when all of it is known."""
        settled = self._settled[alarm.name]
        if first in settled:
            return settled[first]
        point = _breaches(alarm, self._value(alarm, first, now))
        if all(first + alarm.period_minutes <= series.known_until(now) for _, series in self._read[alarm.name]):
            settled[first] = point
            settled.pop(first - (alarm.evaluation_periods + self._additional_points) * alarm.period_minutes, None)
        return point

    def _value(self, alarm: MetricAlarm, first: int, now: int) -> float | None:
        """The data point of the period that begins with minute `first`."""
        values: dict[str, float | None] = dict.fromkeys(alarm.math.ids)
        for query, series in self._read[alarm.name]:
            values[query.id] = series.statistic(query.statistic, first, first + alarm.period_minutes, now=now)
            if self._quotas and query.metric in self._quotas:
                values[quota_id(query.id)] = self._quotas[query.metric]
        return alarm.math.evaluate(values)


def _breaches(alarm: MetricAlarm, value: float | None) -> bool | None:
    return None if value is None else _COMPARISONS[alarm.comparison](float(value), alarm.threshold)


def _missing(alarm: MetricAlarm) -> Missing:
    if (
        alarm.expression in {query.id for query in alarm.queries}
        and alarm.queries[0].metric.namespace == _ALWAYS_IGNORES
    ):
        return Missing.IGNORE
    return alarm.missing
