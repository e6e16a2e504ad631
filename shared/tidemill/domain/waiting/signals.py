"""Signals: named data that reach a job from outside, and the waits that they end. Decision 21 gives the reasons."""

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Cause, Wait

#: The data of a signal as compact JSON text in ASCII, in which each other character takes 6 bytes or more.
LARGEST_SIGNAL_BYTES: Final = 4 * 1024
#: The signals that one job may get in all, so that they fit into its document.
MOST_SIGNALS: Final = 16
#: Short, so that the history shows it whole. An attribute of the table never has it as its name.
NAME_PATTERN: Final = r"[a-z0-9][a-z0-9_.-]{0,31}"
#: In the history, before the name: the cause of a wait that begins, and of a run that a signal brings about.
WAITS: Final = "waits: "
CAME: Final = "signal "
_NAME: Final = re.compile(NAME_PATTERN)


def is_name(name: object) -> bool:
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def require_name(name: object) -> None:
    """Raises `ValueError`."""
    if not is_name(name):
        raise ValueError(f"invalid signal name {name!r}: use 1 to 32 characters of a-z, 0-9, '_', '.' and '-'")


class Signal(Struct, frozen=True, kw_only=True):
    """One signal that a job got."""

    name: str
    at: datetime
    #: JSON text.
    data: str
    #: A run has seen it, and waits for another one of the same name.
    used: bool = False


class Awaited(Struct, frozen=True, kw_only=True):
    """What the last wait of a job was for. Each wait replaces it, and a redrive clears it."""

    cause: Cause
    name: str
    since: datetime
    #: The end of the wait if no signal comes.
    until: datetime
    #: How many consecutive waits were for the same.
    times: int = 1

    @property
    def wait(self) -> Wait:
        return Wait(cause=self.cause, key=self.name, since=self.since)


class JobSignals(Struct, frozen=True, kw_only=True):
    """The signals of a job."""

    #: The signals that it got, in order. Signals add to them, and settle marks those that were used. Cleared
    #: by a redrive with another payload.
    received: tuple[Signal, ...] = ()
    #: What it last waited for by `WaitFor` or `MissingInput`. Set by settle, cleared by redrive.
    awaited: Awaited | None = None

    def with_signal(self, signal: Signal) -> "JobSignals":
        return replace(self, received=(*self.received, signal))


def unused(signals: Sequence[Signal], name: str) -> Signal | None:
    """The signal of that name that a run may take. A job has at most one."""
    return next((signal for signal in signals if signal.name == name and not signal.used), None)


def with_used(signals: Sequence[Signal], name: str) -> tuple[Signal, ...]:
    """Return the signals after a run that has seen the one of that name and waits for another."""
    return tuple(replace(signal, used=signal.used or signal.name == name) for signal in signals)


def next_wait(last: Awaited | None, cause: Cause, name: str, *, after: timedelta, now: datetime) -> Awaited:
    """The wait that begins now. It counts on from the last one if that was for the same."""
    times = last.times + 1 if last and (last.cause, last.name) == (cause, name) else 1
    return Awaited(cause=cause, name=name, since=now, until=now + after, times=times)


def same_json(one: str, other: str) -> bool:
    """Whether two JSON texts hold the same value: the order of members does not count."""
    return one == other or _canonical(json.loads(one)) == _canonical(json.loads(other))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
