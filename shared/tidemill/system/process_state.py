"""What the handlers of a process share with all later ones: `ProcessState` restores it after each batch."""

import builtins
import decimal
import gc
import locale
import logging
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter, eq
from typing import Any, Final

from msgspec import Struct, field

_DECIMAL: Final = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
_HOOKS: Final = ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook"))
_UNREADABLE: Final = object()


class Changes(Struct, frozen=True):
    """The names of what the handlers of a batch changed, and what could not be restored."""

    restored: Sequence[str] = ()
    lost: Sequence[str] = ()


class _Part(Struct, frozen=True):
    name: str
    read: Callable[[], Any]
    #: Gets what was read before.
    restore: Callable[[Any], object]
    same: Callable[[Any, Any], bool] = eq


class ProcessState(Struct):
    """Remember the state before a batch, restore it after the batch, while no handler runs."""

    #: Whether the files of the standard streams are open. Nothing can open them again for those who have them.
    files_intact: Callable[[], bool]
    _before: list[Any] = field(default_factory=list)

    def remember(self) -> None:
        self._before = [_read(part) for part in _PARTS]

    def is_spoiled(self) -> bool:
        """Whether no further handler is to begin. For a check while others run, whose other changes may be brief."""
        return not self.files_intact()

    def restore(self) -> Changes:
        """Best effort. Handlers that outlive the batch may go on to change it."""
        restored = list[str]()
        lost = [] if self.files_intact() else ["files of the standard streams"]
        for part, before in zip(_PARTS, self._before, strict=True):
            if before is _UNREADABLE or part.same(before, _read(part)):
                continue
            with suppress(Exception):
                part.restore(before)
            (restored if part.same(before, _read(part)) else lost).append(part.name)
        return Changes(restored=restored, lost=lost)


def _read(part: _Part) -> Any:
    try:
        return part.read()
    except Exception:  # noqa: BLE001 - such as that of a working directory that was removed
        return _UNREADABLE


def _assign(target: Any, content: Any) -> None:
    """The content of a dictionary. The object stays, since other modules have it."""
    for name in target.keys() - content.keys():
        del target[name]
    for name, value in content.items():
        if target.get(name) is not value and target.get(name) != value:
            target[name] = value


def _has_all(before: Any, later: Any) -> bool:
    """Later ones may be more."""
    return bool(before == later) or all(later.get(name) is value for name, value in before.items())


def _set_all(names: Any, values: Any) -> None:
    for (holder, name), value in zip(names, values, strict=True):
        setattr(holder, name, value)


def _restore_warnings(before: Any) -> None:
    warnings.showwarning, *filters = before
    # It also forgets which warnings were shown under other filters.
    warnings.resetwarnings()
    warnings.filters[:] = filters  # type: ignore[index]  # a list


def _variables() -> Any:
    """Return the variables as bytes: to decode them takes longer than to read all other parts."""
    return os.environb._data.copy()  # type: ignore[attr-defined]  # noqa: SLF001


def _loggers() -> Mapping[str, Any]:
    root = logging.getLogger()
    known = list(root.manager.loggerDict.values())
    return {
        "disabled": root.manager.disable,
        "silent": [each for each in known if getattr(each, "disabled", False)],
        "level": root.level,
        "handlers": list(root.handlers),
        "factory": logging.getLogRecordFactory(),
    }


def _restore_loggers(before: Any) -> None:
    root = logging.getLogger()
    logging.disable(before["disabled"])
    for each in _loggers()["silent"]:
        each.disabled = each in before["silent"]
    root.setLevel(before["level"])
    root.handlers[:] = before["handlers"]
    logging.setLogRecordFactory(before["factory"])


def _event_loop_policy() -> Any:
    """None for that of Python, which its first use creates. A getter would create it, or warn."""
    policy = getattr(sys.modules.get("asyncio.events"), "_event_loop_policy", None)
    return None if type(policy).__module__.startswith("asyncio.") else policy


def _restore_collection(before: Any) -> None:
    enabled, thresholds = before
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(*thresholds)


def _decimal_context() -> Any:
    context = decimal.DefaultContext
    return attrgetter(*_DECIMAL)(context), context.traps.copy()


def _restore_decimal_context(before: Any) -> None:
    context, (values, traps) = decimal.DefaultContext, before
    for name, value in zip(_DECIMAL, values, strict=True):
        setattr(context, name, value)
    context.traps.update(traps)


_PARTS: Final = (
    _Part("environment variables", _variables, lambda before: _assign(os.environb, before)),
    _Part("working directory", os.getcwd, os.chdir),
    _Part(
        "locale",
        lambda: locale.setlocale(locale.LC_ALL),
        lambda before: locale.setlocale(locale.LC_ALL, before),
    ),
    # After the environment, from which it is read.
    _Part("time zone", lambda: (time.tzname, time.timezone, time.altzone), lambda _: time.tzset()),
    _Part("default socket timeout", socket.getdefaulttimeout, socket.setdefaulttimeout),
    _Part("warning filters", lambda: (warnings.showwarning, *warnings.filters), _restore_warnings),
    _Part("logging", _loggers, _restore_loggers),
    _Part(
        "standard streams",
        lambda: (sys.stdout, sys.stderr),
        lambda before: _set_all(((sys, "stdout"), (sys, "stderr")), before),
    ),
    _Part(
        "exception hooks",
        lambda: [getattr(holder, name) for holder, name in _HOOKS],
        lambda before: _set_all(_HOOKS, before),
    ),
    # A handler may start one in any thread. Its signal would end the process later.
    _Part(
        "interval timer",
        lambda: signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0),
        lambda _: signal.setitimer(signal.ITIMER_REAL, 0),
    ),
    _Part(
        "event loop policy",
        _event_loop_policy,
        lambda before: setattr(sys.modules["asyncio.events"], "_event_loop_policy", before),
    ),
    _Part("decimal context", _decimal_context, _restore_decimal_context),
    _Part("garbage collection", lambda: (gc.isenabled(), gc.get_threshold()), _restore_collection),
    _Part("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    _Part("import path", lambda: list(sys.path), lambda before: sys.path.__setitem__(slice(None), before)),
    _Part("modules", sys.modules.copy, sys.modules.update, same=_has_all),
    _Part("builtins", lambda: dict(vars(builtins)), lambda before: _assign(vars(builtins), before)),
)
