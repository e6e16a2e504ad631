"""Where a payload costs least: in an item of the table, or in a file of the bucket."""

from dataclasses import replace
from typing import Final

from tidemill.cost.bill import lines, total
from tidemill.cost.job_usage import of_one_job
from tidemill.cost.profile import Profile
from tidemill.dynamodb.payloads import LARGEST_INLINE_BYTES, LARGEST_ITEM_BYTES
from tidemill.names import LARGEST_BODY_BYTES

#: The step between the sizes that are compared.
_STEP_BYTES: Final = 100


def break_even_bytes(profile: Profile) -> int:
    """The largest payload, to a hundred bytes, whose job costs no more with an item than with a file.

    In bytes before compression. `LARGEST_BODY_BYTES` if that holds at any size, and `LARGEST_INLINE_BYTES` at none.

    An item is charged by the kilobyte, three times: when it is written, kept and deleted. A file is charged by request.
    """
    largest = min(int(LARGEST_ITEM_BYTES * profile.compression), LARGEST_BODY_BYTES)
    sizes = [*range(LARGEST_INLINE_BYTES + _STEP_BYTES, largest, _STEP_BYTES), largest]
    cheaper = (
        size for size in sizes[::-1] if _dollars(profile, size, item=True) <= _dollars(profile, size, item=False)
    )
    return next(cheaper, LARGEST_INLINE_BYTES)


def _dollars(profile: Profile, payload_bytes: int, *, item: bool) -> float:
    placed = replace(profile, payload_bytes=payload_bytes, payload_item_bytes=LARGEST_ITEM_BYTES if item else 0)
    return total(lines(of_one_job(placed)))
