"""Opens the standard streams that a program was started without, as daemons start programs."""

import os
import sys
from pathlib import Path
from typing import Final

_LAST_STANDARD: Final = 2


def open_missing() -> None:
    """Missing input is empty, and missing output is discarded. Python sets the stream of a closed descriptor to None.

    The descriptor is opened too. Otherwise the next file or connection would get its number, and would receive what a
    library or a child process writes to it: https://pubs.opengroup.org/onlinepubs/9799919799/functions/open.html
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _LAST_STANDARD:
        # Child processes inherit it, as they inherit a standard stream.
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the program ends
