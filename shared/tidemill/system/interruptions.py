"""Lets the signals that end a program at a terminal end its blocks first."""

import signal
from typing import Any


def end_as_by_ctrl_c() -> None:
    """SIGTERM and SIGHUP raise `KeyboardInterrupt` from now on, so that temporary files and entries are finished.

    For the main thread of a program. A signal that is ignored stays so: `nohup` ignores SIGHUP.
    """
    for name in ("SIGTERM", "SIGHUP"):
        # Windows has no SIGHUP.
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
