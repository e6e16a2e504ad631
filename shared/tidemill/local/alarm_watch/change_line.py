"""One line for a person about the change of an alarm: time, state, severity, name, meaning and heading. Pure."""

from collections.abc import Mapping
from datetime import datetime

from tidemill.local.alarms import CompositeAlarm, State, Transition
from tidemill.operator.alarm_states import AlarmState


def change_line(change: Transition, described: AlarmState, states: Mapping[str, State], *, at: datetime) -> str:
    """`states` are those of all alarms, from which a composite takes its reason."""
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
