"""`Watch`: evaluates all alarms of a deployed app once a minute, and sets their states on the embedded AWS."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from tidemill.local.alarm_watch import installed_alarms
from tidemill.local.alarm_watch.failed_invocations import FailedInvocations
from tidemill.local.alarm_watch.installed_alarms import AnyAlarm, children_first
from tidemill.local.alarm_watch.log_lines import Source, Value, values_of
from tidemill.local.alarm_watch.metric_values import MetricValues
from tidemill.local.alarm_watch.queue_values import queue_values
from tidemill.local.alarm_watch.short_minutes import ScheduledCalls
from tidemill.local.alarms import CompositeAlarm, Evaluator, MetricAlarm, MetricKey, State, Transition
from tidemill.local.alarms.evaluation import ADDITIONAL_POINTS
from tidemill.metrics import Metric
from tidemill.operator.status.alarm_states import Alarms, AlarmState

#: A minute of the alarms, unless a shorter one is set.
MINUTE_SECONDS: Final = 60.0
#: After this time the alarms judge a stage that has not come up. Cold starts do not shorten with the minutes.
STARTS_WITHIN_SECONDS: Final = 600
#: Makes an SDK client of a service.
Clients = Callable[[str], Any]
#: The embedded AWS gives the lines of an invocation the time of its end, a moment before it shows them.
OVERLAP_MS: Final = 30_000


class LogReader:
    """Reads the metrics in the log lines of all functions, each line once.

    The embedded AWS writes each invocation to a stream of its own, all at once, so a stream is read once.
    """

    def __init__(self, logs: Any, sources: Sequence[Source], *, since_ms: int) -> None:
        self._logs = logs
        self._sources = sources
        self._since_ms = since_ms
        #: The streams that were read, with their times.
        self._read: dict[str, int] = {}

    def read(self, *, now_ms: int) -> Iterator[Value]:
        """The values in the lines that no earlier call read."""
        since = self._since_ms
        before = frozenset(self._read)
        for source in self._sources:
            pages = self._logs.get_paginator("filter_log_events").paginate(
                logGroupName=source.log_group, startTime=since
            )
            for event in (event for page in pages for event in page["events"]):
                if event["logStreamName"] not in before:
                    self._read[event["logStreamName"]] = event["timestamp"]
                    yield from values_of(event["message"].rstrip("\n"), event["timestamp"], source)
        self._since_ms = now_ms - OVERLAP_MS
        self._read = {stream: at_ms for stream, at_ms in self._read.items() if at_ms >= self._since_ms}


class Watch:
    """The embedded AWS notifies topics and evaluates composites when a state is set."""

    def __init__(
        self,
        alarms: Sequence[AnyAlarm],
        client: Clients,
        *,
        sources: Sequence[Source],
        failed: FailedInvocations,
        described: Alarms,
        minute_seconds: float,
        started_at: float,
        also: Collection[MetricKey] = (),
    ) -> None:
        """Times are seconds since the epoch. `also`: metrics to read beside those of the alarms."""
        self._alarms = list(children_first(alarms))
        self._client = client
        self._failed = failed
        self._minute_seconds = minute_seconds
        self._described = described.by_name
        read = {query.metric for alarm in alarms if isinstance(alarm, MetricAlarm) for query in alarm.queries}
        self._wanted = read.union(also)
        # The logs are read from the beginning, so a watch that begins anew knows what an earlier one knew.
        self._minutes = max(_minutes(alarm) for alarm in alarms)
        since = started_at - self._minutes * minute_seconds
        self._logs = LogReader(client("logs"), sources, since_ms=round(since * 1000))
        self._calls = ScheduledCalls(client("scheduler"), client("lambda"))
        self.values = MetricValues()
        self._canaries = [metric for metric in self._wanted if metric.name == Metric.CANARY_LATENCY]
        self._latest_start = self.minute_of(started_at + STARTS_WITHIN_SECONDS)
        #: The first minute that alarms judge. None while the stage starts.
        self.up_since: int | None = None
        self._evaluator = Evaluator(alarms, {})
        #: The states on the embedded AWS.
        self._applied = {alarm.name: State(self._described[alarm.name].state) for alarm in alarms}
        self._evaluator.states |= self._applied

    @property
    def states(self) -> Mapping[str, State]:
        return self._evaluator.states

    def tick(self, now: float) -> Iterator[str]:
        """Evaluate once, unless the stage still starts. To be called once in each minute.

        Yields a line for each change that a person should see.
        """
        minute = self.minute_of(now)
        if self._minute_seconds < MINUTE_SECONDS:
            self._calls.call(minute=minute)
        self._collect(now, minute)
        if self.up_since is None:
            self.up_since = self._start(minute)
        if self.up_since is None:
            return
        self.values.forget(before=max(minute - self._minutes, self.up_since))
        self._evaluator.use(self.values.series())
        self._evaluator.evaluate(minute)
        for alarm in self._alarms:
            old, new = self._applied[alarm.name], self._evaluator.states[alarm.name]
            if old is not new:
                change = Transition(alarm, old, new, minute)
                self._set_state(change)
                # Only now: after an error, the next call tries again.
                self._applied[alarm.name] = new
                if not _is_first_ok(change):
                    self._count_notifications(change, minute)
                    at = datetime.fromtimestamp(now, UTC)
                    yield change_line(change, self._described[alarm.name], self.states, at=at)

    def minute_of(self, seconds: float) -> int:
        return int(seconds // self._minute_seconds)

    def _collect(self, now: float, minute: int) -> None:
        for found in self._logs.read(now_ms=round(now * 1000)):
            self.values.add(found.metric, self.minute_of(found.at_ms / 1000), found.value)
        at = datetime.fromtimestamp(now, UTC)
        for metric, value in queue_values(self._wanted, self._client("sqs"), self._client("cloudwatch"), now=at):
            self.values.add(metric, minute, value)
        for metric in self._failed.read():
            self.values.add(metric, minute, 1.0)

    def _start(self, minute: int) -> int | None:
        """The minute in which a canary of every lane had got through. After the longest start: this one."""
        known = self.values.by_minute()
        firsts = [min(known[metric]) for metric in self._canaries if metric in known]
        if firsts and len(firsts) == len(self._canaries):
            return max(firsts)
        return minute if minute >= self._latest_start else None

    def _set_state(self, change: Transition) -> None:
        """Set the state, unless the embedded AWS has already set that of a composite with that of its child."""
        cloudwatch, name = self._client("cloudwatch"), change.alarm.name
        if installed_alarms.states(cloudwatch, AlarmNames=[name])[name] is change.new:
            return
        # The first state of a new alarm would call reconcile for each queue at once: five cold starts on this machine.
        quiet = _is_first_ok(change) and bool(change.actions)
        if quiet:
            cloudwatch.disable_alarm_actions(AlarmNames=[name])
        try:
            reason = f"evaluated by the watch of alarms: {change.old} to {change.new}"
            cloudwatch.set_alarm_state(AlarmName=name, StateValue=change.new.value, StateReason=reason)
        finally:
            if quiet:
                cloudwatch.enable_alarm_actions(AlarmNames=[name])

    def _count_notifications(self, change: Transition, minute: int) -> None:
        """The metrics of topics, which the embedded AWS lacks."""
        for topic in change.actions:
            dimensions = (("TopicName", topic),)
            self.values.add(MetricKey("AWS/SNS", "NumberOfMessagesPublished", dimensions), minute, 1.0)
            if self._client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]:
                self.values.add(MetricKey("AWS/SNS", "NumberOfNotificationsDelivered", dimensions), minute, 1.0)


def _is_first_ok(change: Transition) -> bool:
    """A new alarm is healthy until its first data, so this change tells an operator nothing."""
    return (change.old, change.new) == (State.INSUFFICIENT_DATA, State.OK)


def _minutes(alarm: AnyAlarm) -> int:
    """How many minutes back an alarm reads."""
    if not isinstance(alarm, MetricAlarm):
        return 0
    return (alarm.evaluation_periods + ADDITIONAL_POINTS) * alarm.period_minutes + 1


def change_line(change: Transition, described: AlarmState, states: Mapping[str, State], *, at: datetime) -> str:
    """Time, state, severity, name, meaning and advice, for a person. A composite takes its reason from all `states`."""
    words = [f"{at:%H:%M:%S}", f"{change.new:<5}", f"{described.severity:<8}", f"{change.alarm.name}:"]
    if change.new is State.ALARM:
        words.append(f"{described.meaning}{_because(change, states)} Do: {described.advice}")
    else:
        words.append(f"it was {change.old}")
    return " ".join(words)


def _because(change: Transition, states: Mapping[str, State]) -> str:
    if not isinstance(change.alarm, CompositeAlarm):
        return ""
    firing = sorted(name for name in change.alarm.rule.children if states[name] is State.ALARM)
    return f" These fire: {', '.join(firing)}."
