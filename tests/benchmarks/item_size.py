"""The size of an item, and the write units that a write of it takes.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
"""

import base64
import math
from collections.abc import Mapping
from typing import Any, Final

UNIT_BYTES: Final = 1024
#: The bytes of a list or map itself, and of each of its members.
_CONTAINER_BYTES: Final = 3
_MEMBER_BYTES: Final = 1


def item_bytes(item: Mapping[str, Any]) -> int:
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def write_units(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> int:
    """Return the units of one write. An update takes the larger of the sizes before and after."""
    return max(1, *(math.ceil(item_bytes(item) / UNIT_BYTES) for item in (before or {}, after)))


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(base64.b64decode(content))
        case "N":
            # One byte for two digits, and one more.
            return math.ceil(len(content.strip("-").replace(".", "")) / 2) + 1
        case "L":
            return _CONTAINER_BYTES + sum(_MEMBER_BYTES + _value_bytes(member) for member in content)
        case "M":
            return _CONTAINER_BYTES + item_bytes(content) + _MEMBER_BYTES * len(content)
        case _:
            return 1
