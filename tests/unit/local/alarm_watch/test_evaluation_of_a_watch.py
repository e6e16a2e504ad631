"""A watch takes metrics from log lines, sets the states of alarms, and reports each change once."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from tidemill.local.alarm_watch.failed_invocations import FailedInvocations
from tidemill.local.alarm_watch.log_lines import Source
from tidemill.local.alarm_watch.watch import MINUTE_SECONDS, STARTS_WITHIN_SECONDS, Watch
from tidemill.local.alarms import CompositeAlarm, MetricAlarm, MetricKey
from tidemill.local.alarms.definition import Missing, Query
from tidemill.metrics import Metric
from tidemill.names import Lane
from tidemill.operator.status.alarm_states import Alarms, AlarmState, Severity

BEGIN: Final = 1_800_000_000
TOPIC: Final = "arn:pages"
DEATHS: Final = MetricAlarm(
    name="app-Deaths",
    queries=(Query("m1", MetricKey("Tidemill", "JobsDead", (("lane", "bulk"), ("stage", "local"))), "Sum"),),
    expression="m1",
    period_minutes=1,
    evaluation_periods=1,
    datapoints_to_alarm=1,
    threshold=0,
    comparison="GreaterThanThreshold",
    missing=Missing.NOT_BREACHING,
    ok_actions=("arn:tickets",),
)
LANES: Final = (Lane.DEFAULT, Lane.BULK)
#: The metrics of the canaries of these lanes.
CANARIES: Final = [MetricKey("Tidemill", Metric.CANARY_LATENCY, (("lane", lane), ("stage", "local"))) for lane in LANES]
PAGE: Final = CompositeAlarm(name="app-Page", rule_text='ALARM("app-Deaths")', alarm_actions=(TOPIC,))


class Emulator:
    """All clients in one. CloudWatch sets the composite with its child, and notifies."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []
        self.states = {alarm.name: "INSUFFICIENT_DATA" for alarm in (DEATHS, PAGE)}
        self.published: list[str] = []
        self.disabled: list[str] = []
        #: The next calls of `set_alarm_state` fail.
        self.broken = 0

    def get_paginator(self, operation: str) -> "Emulator":
        self._operation = operation
        return self

    def paginate(self, *, startTime: int = 0, AlarmNames: Any = (), **_: Any) -> list[Any]:  # noqa: N803 - the API's
        if self._operation == "describe_alarms":
            found = [{"AlarmName": name, "StateValue": self.states[name]} for name in AlarmNames]
            return [{"MetricAlarms": found, "CompositeAlarms": []}]
        events = [
            {"logStreamName": str(number), "timestamp": at * 1000, "message": message}
            for number, (at, message) in enumerate(self.lines)
            if at * 1000 >= startTime
        ]
        return [{"events": events}]

    def set_alarm_state(self, *, AlarmName: str, StateValue: str, StateReason: str) -> None:  # noqa: N803 - the API's
        assert StateReason
        if self.broken:
            self.broken -= 1
            raise ConnectionError
        if AlarmName == DEATHS.name and StateValue == "OK" and AlarmName not in self.disabled:
            self.published.append(f"{AlarmName} is OK")
        for name in {AlarmName, PAGE.name} if AlarmName == DEATHS.name else {AlarmName}:
            if self.states[name] != StateValue:
                self.states[name] = StateValue
                if name == PAGE.name and StateValue == "ALARM":
                    self.published.append(name)

    def disable_alarm_actions(self, *, AlarmNames: list[str]) -> None:  # noqa: N803 - the API's
        self.disabled += AlarmNames

    def enable_alarm_actions(self, *, AlarmNames: list[str]) -> None:  # noqa: N803 - the API's
        self.disabled = [name for name in self.disabled if name not in AlarmNames]

    def list_subscriptions_by_topic(self, *, TopicArn: str) -> dict[str, Any]:  # noqa: N803 - the API's
        assert TopicArn in {TOPIC, "arn:tickets"}
        return {"Subscriptions": []}

    def dies(self, at: int) -> None:
        self._counts(at, Metric.DEAD, Lane.BULK)

    def passes(self, at: int, *lanes: Lane) -> None:
        """A canary of each lane succeeds."""
        for lane in lanes:
            self._counts(at, Metric.CANARY_LATENCY, lane)

    def _counts(self, at: int, metric: Metric, lane: Lane) -> None:
        directive = {"Namespace": "Tidemill", "Dimensions": [["stage", "lane"]], "Metrics": [{"Name": metric}]}
        about = {"Timestamp": at * 1000, "CloudWatchMetrics": [directive]}
        self.lines.append((at, json.dumps({"stage": "local", "lane": lane, "_aws": about, metric: 1})))


@pytest.fixture
def emulator() -> Emulator:
    return Emulator()


@pytest.fixture
def starting(emulator: Emulator, tmp_path: Path) -> Watch:
    """The watch of a stage whose canaries have not got through."""
    (tmp_path / "emulator.log").touch()

    def described(name: str) -> AlarmState:
        since = datetime.fromtimestamp(BEGIN, UTC)
        return AlarmState(
            name=name,
            severity=Severity.PAGE,
            state=emulator.states[name],
            since=since,
            meaning="Jobs die.",
            advice="runbook.md",
        )

    return Watch(
        [PAGE, DEATHS],
        lambda _: emulator,
        sources=[Source("/work", "app-Work")],
        failed=FailedInvocations(tmp_path / "emulator.log"),
        described=Alarms({name: described(name) for name in emulator.states}),
        minute_seconds=MINUTE_SECONDS,
        started_at=BEGIN,
        also=CANARIES,
    )


@pytest.fixture
def watch(starting: Watch, emulator: Emulator) -> Watch:
    emulator.passes(BEGIN, *LANES)
    return starting


def ticks(watch: Watch, *minutes: int) -> list[str]:
    return [line for minute in minutes for line in watch.tick(BEGIN + minute * MINUTE_SECONDS)]


def words(line: str) -> tuple[str, str]:
    _, state, _, name, *_ = line.split()
    return state, name.removesuffix(":")


def test_a_metric_in_a_log_line_fires_its_alarm_and_the_composite_once(watch: Watch, emulator: Emulator) -> None:
    assert ticks(watch, 1, 2) == []
    assert set(emulator.states.values()) == {"OK"}
    emulator.dies(BEGIN + 130)
    assert list(map(words, ticks(watch, 3, 4, 5))) == [("ALARM", DEATHS.name), ("ALARM", PAGE.name)]
    assert emulator.published == [PAGE.name]
    assert list(map(words, ticks(watch, 6, 7, 8, 9))) == [("OK", DEATHS.name), ("OK", PAGE.name)]
    assert emulator.published == [PAGE.name, f"{DEATHS.name} is OK"]


def test_the_first_ok_of_a_new_alarm_sends_no_notification_and_leaves_its_actions_enabled(
    watch: Watch, emulator: Emulator
) -> None:
    emulator.broken = 1
    with pytest.raises(ConnectionError):
        ticks(watch, 1)
    assert emulator.disabled == []
    assert ticks(watch, 2) == []
    assert set(emulator.states.values()) == {"OK"}
    assert emulator.published == []
    assert emulator.disabled == []


def test_a_state_that_could_not_be_set_is_set_by_the_next_evaluation(watch: Watch, emulator: Emulator) -> None:
    ticks(watch, 1, 2)
    emulator.dies(BEGIN + 130)
    emulator.broken = 1
    with pytest.raises(ConnectionError):
        ticks(watch, 3, 4)
    assert emulator.states[DEATHS.name] == "OK"
    assert list(map(words, ticks(watch, 5))) == [("ALARM", DEATHS.name), ("ALARM", PAGE.name)]
    assert emulator.states[DEATHS.name] == "ALARM"


def test_a_page_without_subscriber_counts_as_published_and_not_as_delivered(watch: Watch, emulator: Emulator) -> None:
    emulator.dies(BEGIN + 70)
    ticks(watch, 1, 2, 3)
    assert {metric.name for metric in watch.values.by_minute() if metric.namespace == "AWS/SNS"} == {
        "NumberOfMessagesPublished"
    }


def test_the_alarms_of_a_stage_judge_no_time_before_a_canary_of_each_lane_got_through(
    starting: Watch, emulator: Emulator
) -> None:
    emulator.dies(BEGIN + 10)
    emulator.passes(BEGIN + 70, Lane.DEFAULT)
    emulator.dies(BEGIN + 130)
    assert ticks(starting, 1, 2, 3) == []
    assert set(emulator.states.values()) == {"INSUFFICIENT_DATA"}
    emulator.passes(BEGIN + 190, Lane.BULK)
    assert ticks(starting, 4, 5, 6) == []
    assert set(emulator.states.values()) == {"OK"}
    emulator.dies(BEGIN + 370)
    assert list(map(words, ticks(starting, 7, 8))) == [("ALARM", DEATHS.name), ("ALARM", PAGE.name)]


def test_a_watch_that_begins_anew_judges_the_time_since_the_stage_came_up(starting: Watch, emulator: Emulator) -> None:
    emulator.passes(BEGIN - 170, *LANES)
    emulator.dies(BEGIN - 50)
    assert list(map(words, ticks(starting, 1))) == [("ALARM", DEATHS.name), ("ALARM", PAGE.name)]


def test_the_alarms_judge_a_stage_that_does_not_come_up(starting: Watch, emulator: Emulator) -> None:
    last = int(STARTS_WITHIN_SECONDS // MINUTE_SECONDS)
    emulator.passes(BEGIN + 10, Lane.DEFAULT)
    emulator.dies(BEGIN + 20)
    assert ticks(starting, *range(1, last)) == []
    emulator.dies(BEGIN + STARTS_WITHIN_SECONDS + 1)
    assert list(map(words, ticks(starting, last, last + 1, last + 2))) == [
        ("ALARM", DEATHS.name),
        ("ALARM", PAGE.name),
    ]
