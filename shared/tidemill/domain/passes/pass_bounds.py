"""How long reconcile takes: bounds that follow from the number of documents and the settings. Pure.

A scan is charged for the bytes of whole pages: half a read unit for each 4 KB, because it reads eventually.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

from datetime import timedelta
from typing import Final

_BYTES_PER_UNIT: Final = 2 * 4096


def read_units(*, documents: int, bytes_each: int) -> float:
    """The price of one pass. `bytes_each` includes the items beside a document, such as its payload."""
    return documents * bytes_each / _BYTES_PER_UNIT


def pass_duration(
    *, documents: int, bytes_each: int, units_per_second: float, run: timedelta, pause: timedelta
) -> timedelta:
    """The longest time from the beginning of a pass to its end, if no run fails.

    A run works for `run`, and the next one begins at most `pause` later. Repairs take time beside the reads.
    """
    reading = timedelta(seconds=read_units(documents=documents, bytes_each=bytes_each) / units_per_second)
    return reading + (reading // run + 1) * pause
