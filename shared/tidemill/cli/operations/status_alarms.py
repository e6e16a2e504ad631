"""The alarms of the status as lines, and the burn rates of the objectives as a table. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final

from tidemill.cli.blocks import RED, YELLOW, Block, Line, Table
from tidemill.cli.formatting import DASH, age, count
from tidemill.operator.status.alarm_states import Alarms, AlarmState, Severity
from tidemill.operator.status.burn_rates import BurnRate
from tidemill.operator.status.system_status import AlarmsNow, Unread

_STYLES: Final = {Severity.PAGE: RED, Severity.TICKET: YELLOW}


def firing(found: AlarmsNow | Unread, *, now: datetime) -> Iterator[Line]:
    """Each page, and then each ticket, with what to do: the first to fire comes first."""
    if isinstance(found, Unread):
        yield Line(f"Alarms: not read: {found.error}", RED)
        return
    for severity, style in _STYLES.items():
        for alarm in found.alarms.firing(severity):
            yield Line(f"{severity.upper()} since {age(now - alarm.since)}: {alarm.meaning}", style)
            yield from (Line(f"  {part.meaning}") for part in found.alarms.firing_parts(alarm))
            if alarm.advice:
                yield Line(f"  {alarm.advice}", is_command=True)


def summary(alarms: Alarms, *, now: datetime) -> Line:
    """How many fire, and whether that is one notified incident."""
    if not alarms.by_name:
        return Line("No alarms here: the stacks have none")
    pages, tickets = (len(alarms.firing(severity)) for severity in (Severity.PAGE, Severity.TICKET))
    parts = [count(number, noun) for number, noun in ((pages, "page"), (tickets, "ticket")) if number]
    notified = "".join(f"; the page was sent {age(now - each.since)} ago" for each in alarms.firing(Severity.INCIDENT))
    return Line(
        f"{' and '.join(parts) or 'None'} of {count(_number(alarms), 'alarm')} {_fire(pages + tickets)}{notified}"
    )


def _number(alarms: Alarms) -> int:
    """Without the composite of all pages, and without parts, which are counted with their composite."""
    return sum(alarm.severity in _STYLES for alarm in alarms.by_name.values())


def _fire(number: int) -> str:
    return "fires" if number <= 1 else "fire"


def burn_table(found: tuple[BurnRate, ...] | Unread) -> Iterator[Block]:
    if isinstance(found, Unread):
        yield Line(f"Burn rates: not read: {found.error}", RED)
    elif found:
        rows = [list(burns) for _, burns in groupby(found, key=lambda burn: burn.bad_events)]
        titles = ("BURN RATE OF (FIRES ABOVE)", *map(_title, rows[0]))
        yield Table(titles, [_row(burns) for burns in rows], numbers=range(1, len(titles)))


def _title(burn: BurnRate) -> str:
    return f"{age(burn.window).upper()} ({burn.fires_above:g})"


def _row(burns: Sequence[BurnRate]) -> tuple[str, ...]:
    return (burns[0].bad_events, *(DASH if burn.rate is None else f"{burn.rate:.3g}" for burn in burns))


def as_json(found: AlarmsNow) -> dict[str, object]:
    alarms = found.alarms
    return {
        "number": _number(alarms),
        "incident": bool(alarms.firing(Severity.INCIDENT)),
        "firing": [_alarm(alarm, alarms) for severity in _STYLES for alarm in alarms.firing(severity)],
    }


def _alarm(alarm: AlarmState, alarms: Alarms) -> dict[str, object]:
    return {
        "name": alarm.name,
        "severity": alarm.severity,
        "since": alarm.since.isoformat(timespec="seconds"),
        "meaning": alarm.meaning,
        "what_to_do": alarm.advice,
        "parts": [part.meaning for part in alarms.firing_parts(alarm)],
    }
