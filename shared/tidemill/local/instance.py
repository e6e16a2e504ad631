"""The folders in `.tidemill` that instances keep their state in, and who may use them when.

`up` is the one that a person leaves running. Every other instance belongs to one process, which holds a lock in it for
as long as it lives; what an owner could not clear away the next one does.
"""

import contextlib
import fcntl
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tidemill.local import emulator
from tidemill.local.paths import STATE

UP: Final = STATE / "up"
OWNED: Final = "run-*"
LOCK: Final = "owner.lock"


@contextlib.contextmanager
def owned() -> Iterator[Path]:
    """A new folder for this process. If the block fails it is kept, for a look into its logs, until the next run."""
    _clear_away_orphans()
    folder = STATE / f"run-{secrets.token_hex(3)}"
    unnamed = STATE / f"new-{folder.name}"
    unnamed.mkdir(parents=True)
    with (unnamed / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unnamed.rename(folder)  # with the lock held already: nobody sees it without an owner
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
def up() -> Iterator[Path]:
    """The folder of the instance that is left running, to change it: one process at a time."""
    STATE.mkdir(exist_ok=True)
    with (STATE / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield UP


def _clear_away_orphans() -> None:
    """End and remove what the processes of killed owners left."""
    for folder in STATE.glob(OWNED):
        with contextlib.suppress(OSError), (folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            emulator.stop(folder)
            shutil.rmtree(folder)
