"""Writes the smallest MaxMind database: one record for the lower half of all IPv4 addresses, and nothing for the rest.

https://maxmind.github.io/MaxMind-DB/
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

_STRING, _UINT16, _UINT32, _MAP = 2, 5, 6, 7
_UINT64, _ARRAY = 9, 11
_FIRST_EXTENDED = 8


def write(path: Path, record: Mapping[str, Any]) -> None:
    nodes = 1
    #: Offset from the end of the tree: 16 zero bytes separate the tree from the data.
    first_record = nodes + 16
    tree = first_record.to_bytes(3) + nodes.to_bytes(3)
    metadata = {
        "node_count": (_UINT32, nodes),
        "record_size": (_UINT16, 24),
        "ip_version": (_UINT16, 4),
        "database_type": "Test",
        "languages": [],
        "binary_format_major_version": (_UINT16, 2),
        "binary_format_minor_version": (_UINT16, 0),
        "build_epoch": (_UINT64, 1_400_000_000),
        "description": {},
    }
    path.write_bytes(tree + bytes(16) + _encoded(record) + b"\xab\xcd\xefMaxMind.com" + _encoded(metadata))


def _encoded(value: Any) -> bytes:
    if isinstance(value, str):
        return _control(_STRING, len(value)) + value.encode()
    if isinstance(value, tuple):
        kind, number = cast("tuple[int, int]", value)
        raw = number.to_bytes((number.bit_length() + 7) // 8)
        return _control(kind, len(raw)) + raw
    if isinstance(value, Mapping):
        pairs = b"".join(_encoded(key) + _encoded(held) for key, held in value.items())
        return _control(_MAP, len(value)) + pairs
    return _control(_ARRAY, len(value))


def _control(kind: int, size: int) -> bytes:
    if kind < _FIRST_EXTENDED:
        return bytes([kind << 5 | size])
    return bytes([size, kind - 7])
