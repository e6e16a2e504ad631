"""Breakers and lowered limits as lines, rows and JSON. Pure."""

import shlex
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Final

from tidemill.cli.blocks import RED, YELLOW, Line, Table
from tidemill.cli.formatting import DASH, because, count, readable_time, set_by, timestamp
from tidemill.domain.breakers.breaker import Breaker, BreakerState
from tidemill.domain.limits.adaptive_limit import Trouble
from tidemill.domain.operations.setting import Setting
from tidemill.domain.time_constants import EPOCH
from tidemill.dynamodb.operations.attention_counts import Counted
from tidemill.operator.status.held_lines import BreakerStatus, LoweredLimit
from tidemill.operator.status.system_status import Unread

_TITLES: Final = (
    "BREAKER",
    "STATE",
    "SINCE",
    "FAILURES",
    "PROBES FAILED",
    "REOPENED",
    "NEXT PROBE",
    "PARKED",
    "FORCED BY",
    "LAST ERROR",
)


def breaker_lines(found: tuple[BreakerStatus, ...] | Unread) -> Iterator[Line]:
    if isinstance(found, Unread):
        yield Line(f"Breakers: not read: {found.error}", RED)
        return
    for each in found:
        name, waiting = each.breaker.name, f"{shown_number(each.parked)} parked"
        if forced := each.forced:
            what = f"{_forced(forced).upper()}: {name} {set_by(forced)}, {waiting}"
            yield Line(f"BREAKER FORCED {what}{because(forced.reason)}", YELLOW)
            yield Line(f"  tidemill config set {shlex.quote(forced.name)} --remove", is_command=True)
        elif each.breaker.closed:
            since = f"since {readable_time(each.breaker.since)}"
            yield Line(f"BREAKER CLOSED: {name} {since}, {waiting}, which start in order at a rate that grows")
        else:
            error = f": {each.breaker.last_error}" if each.breaker.last_error else ""
            yield Line(f"BREAKER {each.breaker.state.upper()}: {name} {_opened(each)}, {waiting}{error}", YELLOW)
            yield Line(f"  tidemill breakers {shlex.quote(name)}", is_command=True)


def lowered_lines(found: tuple[LoweredLimit, ...] | Unread) -> Iterator[Line]:
    if isinstance(found, Unread):
        yield Line(f"Lowered limits: not read: {found.error}", RED)
        return
    for each in found:
        number = f"{each.bounds.slots(each.adapted)} of {each.bounds.ceiling} runs at once"
        fell, why = each.adapted.fell_at, _why(each.adapted.why)
        last = f", lowered last at {readable_time(fell)} ({why})" if fell else ""
        yield Line(f"LIMIT LOWERED: the {each.line} lets {number}{last}, {shown_number(each.parked)} parked", YELLOW)


def breaker_table(found: tuple[BreakerStatus, ...]) -> Table:
    return Table(_TITLES, [_row(each) for each in found], numbers=(3, 4, 5, 7))


def breaker_as_json(each: BreakerStatus) -> dict[str, Any]:
    """`failures` are those of the last window; for an open breaker, of the one in which it opened."""
    breaker, forced, probe = each.breaker, each.forced, _probe(each)
    return {
        "name": breaker.name,
        "state": breaker.state,
        "since": _known(breaker.since, timestamp),
        "failures": breaker.failures,
        "calls": breaker.calls,
        "probes_failed": breaker.probes,
        "reopened": breaker.reopened,
        "last_error": breaker.last_error or None,
        "next_probe": probe and timestamp(probe),
        "probe_job": breaker.probe[1] if breaker.probe and probe else None,
        "parked": each.parked.number,
        "parked_exact": each.parked.exact,
        "forced": forced
        and {
            "state": _forced(forced),
            "by": forced.by,
            "since": timestamp(forced.at),
            "until": forced.until and timestamp(forced.until),
            "reason": forced.reason or None,
        },
    }


def lowered_as_json(each: LoweredLimit) -> dict[str, Any]:
    fell = each.adapted.fell_at
    return {
        "key": each.line.key,
        "runs": each.bounds.slots(each.adapted),
        "floor": each.bounds.floor,
        "ceiling": each.bounds.ceiling,
        "lowered_at": fell and timestamp(fell),
        "why": each.adapted.why,
        "parked": each.parked.number,
        "parked_exact": each.parked.exact,
    }


def _row(each: BreakerStatus) -> tuple[str, ...]:
    breaker, probe = each.breaker, _probe(each)
    return (
        breaker.name,
        f"{breaker.state}, forced {_forced(each.forced)}" if each.forced else breaker.state,
        _known(breaker.since, readable_time) or DASH,
        f"{breaker.failures} of {breaker.calls}",
        str(breaker.probes),
        str(breaker.reopened),
        DASH if probe is None else "runs now" if _probed(breaker) else readable_time(probe),
        shown_number(each.parked),
        each.forced.by if each.forced else DASH,
        breaker.last_error or DASH,
    )


def _opened(each: BreakerStatus) -> str:
    breaker, probe = each.breaker, _probe(each)
    failures = f"{breaker.failures} of {breaker.calls} calls failed"
    next_ = "a probe runs now" if _probed(breaker) or probe is None else f"next probe {readable_time(probe)}"
    again = f", reopened {count(breaker.reopened, 'time')}" if breaker.reopened else ""
    return f"since {readable_time(breaker.since)} ({failures}), {next_}{again}"


def _probe(each: BreakerStatus) -> datetime | None:
    """When the probe comes or came; None for a breaker that needs none."""
    breaker = each.breaker
    if breaker.closed or each.forced:
        return None
    return breaker.probe_at if breaker.probe else breaker.next_probe_at(now=breaker.since)


def _probed(breaker: Breaker) -> bool:
    return breaker.state is BreakerState.HALF_OPEN


def _forced(setting: Setting) -> str:
    return str(setting.value["force"])


def _why(trouble: Trouble | None) -> str:
    return trouble or "for a reason that only a newer version knows"


def _known(at: datetime, shown: Callable[[datetime], str]) -> str | None:
    return None if at == EPOCH else shown(at)


def shown_number(counted: Counted) -> str:
    return str(counted.number) if counted.exact else f"> {counted.number}"
