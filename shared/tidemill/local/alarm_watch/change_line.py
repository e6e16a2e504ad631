"""One line for a person about the change of an alarm: time, state, severity, name, meaning and heading. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from tidemill.local.alarm_watch.installed_alarms import AnyAlarm
from tidemill.local.alarms import CompositeAlarm, State, Transition

_WHAT_TO_DO: Final = " What to do: "


def severities(alarms: Sequence[AnyAlarm], *, page_topic: str) -> Mapping[str, str]:
    """By the name of the alarm: page, ticket or part. The composite that notifies the page topic reads all pages."""
    pages = {
        name
        for alarm in alarms
        if page_topic in alarm.alarm_actions and isinstance(alarm, CompositeAlarm)
        for name in (alarm.name, *alarm.rule.children)
    }
    return {
        alarm.name: "page" if alarm.name in pages else "ticket" if alarm.alarm_actions else "part" for alarm in alarms
    }


def change_line(change: Transition, severity: str, states: Mapping[str, State], *, at: datetime) -> str:
    """`states` are those of all alarms, from which a composite takes its reason."""
    alarm = change.alarm
    words = [f"{at:%H:%M:%S}", f"{change.new:<5}", f"{severity:<6}", f"{alarm.name}:"]
    if change.new is State.ALARM:
        meaning, _, runbook = alarm.description.partition(_WHAT_TO_DO)
        words.append(f"{meaning.partition(': ')[2]}{_because(alarm, states)} Do: {runbook}")
    else:
        words.append(f"it was {change.old}")
    return " ".join(words)


def _because(alarm: AnyAlarm, states: Mapping[str, State]) -> str:
    if not isinstance(alarm, CompositeAlarm):
        return ""
    firing = sorted(name for name in alarm.rule.children if states[name] is State.ALARM)
    return f" These fire: {', '.join(firing)}."
