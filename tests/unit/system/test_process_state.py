"""What a handler changes in its process is as before once its batch has ended, or the process ends."""

import asyncio
import builtins
import decimal
import gc
import json
import locale
import logging
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tidemill.system.process_state import Changes, ProcessState


def _change_zone() -> None:
    os.environ["TZ"] = "Asia/Kathmandu"
    time.tzset()


def _become_deaf() -> None:
    logging.getLogger().handlers.clear()
    logging.getLogger("another").disabled = True
    logging.disable(logging.CRITICAL)


def _set_hooks() -> None:
    sys.excepthook = threading.excepthook = sys.unraisablehook = print


class _Policy(asyncio.AbstractEventLoopPolicy if sys.version_info < (3, 14) else object):  # type: ignore[misc]
    """A policy such as that of a library."""


#: By the name of what it changes.
HARM: Final[dict[str, Callable[[], Any]]] = {
    "environment variables": os.environ.clear,
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8"),
    "time zone": _change_zone,
    "default socket timeout": lambda: socket.setdefaulttimeout(0.001),
    "warning filters": lambda: warnings.simplefilter("error"),
    "logging": _become_deaf,
    "standard streams": lambda: setattr(sys, "stdout", None),
    "exception hooks": _set_hooks,
    "interval timer": lambda: signal.setitimer(signal.ITIMER_REAL, 1000),
    "event loop policy": lambda: setattr(asyncio.events, "_event_loop_policy", _Policy()),
    "decimal context": lambda: setattr(decimal.DefaultContext, "prec", 2),
    "garbage collection": gc.disable,
    "recursion limit": lambda: sys.setrecursionlimit(5_000),
    "import path": sys.path.clear,
    "modules": lambda: sys.modules.pop("json"),
    "builtins": lambda: delattr(builtins, "print"),
}


@pytest.fixture
def state() -> Iterator[ProcessState]:
    state = ProcessState(files_intact=lambda: True)
    logging.getLogger("another")
    yield state
    # Also after a failed test.
    state.restore()


@pytest.mark.parametrize("name", HARM)
def test_what_a_handler_changed_is_named_and_restored(name: str, state: ProcessState) -> None:
    state.remember()
    HARM[name]()

    changes = state.restore()

    assert name in changes.restored
    assert not changes.lost
    assert state.restore() == Changes(restored=[], lost=[])


def test_nothing_is_lost_with_all_harm_at_once(state: ProcessState) -> None:
    state.remember()
    variables, path, zone = dict(os.environ), list(sys.path), time.tzname
    for harm in HARM.values():
        harm()
    assert state.restore().lost == []
    assert (dict(os.environ), sys.path, time.tzname, sys.modules["json"]) == (variables, path, zone, json)
    assert not logging.getLogger("another").disabled


def test_a_working_directory_that_was_removed_is_left(state: ProcessState, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    state.remember()
    os.chdir(gone)
    gone.rmdir()
    assert state.restore() == Changes(restored=["working directory"], lost=[])


def test_what_cannot_be_restored_is_lost(tmp_path: Path) -> None:
    state, before = ProcessState(files_intact=lambda: False), Path.cwd()
    (tmp_path / "work").mkdir()
    os.chdir(tmp_path / "work")
    try:
        state.remember()
        os.chdir(tmp_path)
        (tmp_path / "work").rmdir()
        assert state.restore() == Changes(restored=[], lost=["files of the standard streams", "working directory"])
        assert state.is_spoiled()
    finally:
        os.chdir(before)


def test_new_modules_and_the_first_event_loop_stay(state: ProcessState, monkeypatch: pytest.MonkeyPatch) -> None:
    state.remember()
    monkeypatch.setitem(sys.modules, "imported_by_a_handler", sys)
    asyncio.run(asyncio.sleep(0))
    assert state.restore() == Changes(restored=[], lost=[])
