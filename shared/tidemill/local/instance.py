"""The folders in `.tidemill` that hold the state of instances, and the locks that protect them.

`make up` leaves the instance `up` running. Every other instance belongs to one process, which holds a lock in its
folder until it exits. If an owner was killed, the next one removes its instance.
"""

import contextlib
import fcntl
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.console import Console

from tidemill.local import emulator
from tidemill.local.paths import STATE

UP: Final = STATE / "up"
OWNED: Final = "run-*"
LOCK: Final = "owner.lock"


@contextlib.contextmanager
def owned() -> Iterator[Path]:
    """A new folder for this process. After a failure of the block, it stays until the next run, for its logs."""
    _clear_away_orphans()
    folder = STATE / f"run-{secrets.token_hex(3)}"
    unnamed = STATE / f"new-{folder.name}"
    unnamed.mkdir(parents=True)
    with (unnamed / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unnamed.rename(folder)  # under the lock, so that no process sees the folder without an owner
        kept = False
        try:
            yield folder
        except Exception:
            kept = True
            raise
        finally:
            if not kept:
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def up(console: Console) -> Iterator[Path]:
    """The folder of the instance that stays running. One process at a time may change it, and others wait."""
    STATE.mkdir(exist_ok=True)
    with (STATE / "up.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            console.print("another `make up` or `make down` is at work; waiting until it ends", highlight=False)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield UP


def _clear_away_orphans() -> None:
    """End and remove the instances of killed owners."""
    for folder in STATE.glob(OWNED):
        with contextlib.suppress(OSError), (folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            emulator.stop(folder)
            shutil.rmtree(folder)
