"""Values and requests as text for readers: without quotes, times from the beginning, ids by their number."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from textwrap import TextWrapper
from typing import Any, Final

from boto3.dynamodb.types import Binary, TypeDeserializer
from msgspec import Struct

from tests.simulation.deployment import JOBS_TABLE
from tests.simulation.world.task_scheduler import BEGINNING_MS

#: A longer list shows its first and its last member.
_MANY: Final = 12
_WIDTH: Final = 118
#: The longest member that shares a paragraph with others.
_SHORT: Final = 60
_WRAPPED: Final = TextWrapper(
    _WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
)
#: One call of a traceback: it names a file of this machine, and a line that moves.
_FRAME: Final = re.compile(r'  File "(.*)", line \d+, in (\S+)\n(?:    .*\n)*')
_PLACEHOLDER: Final = re.compile(r"[#:]\w+")
#: The types of DynamoDB: each value is an object with one of them.
_TYPES: Final = frozenset({"S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"})
_MILLISECONDS: Final = re.compile(r"(?<![\w.])2[34]\d{11}(?![\w.])")
_MICROSECONDS: Final = re.compile(r"(?<![\w.])2[34]\d{14}(?![\w.])")
_SECONDS: Final = re.compile(r"(?<![\w.])2[34]\d{8}(?![\w.])")
_ISO: Final = re.compile(r"20[4-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_ID: Final = re.compile(
    r"""\b(?:
        00-[0-9a-f]{32}-[0-9a-f]{16}-01(?:/[\w-]+)?  # a trace, with the id of its request
        |[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}
        |[0-9A-HJKMNP-TV-Z]{26}
        |[0-9a-f]{32}
    )\b""",
    re.VERBOSE,
)
_read: Final = TypeDeserializer().deserialize


class Readable:
    """Turns what one story sees into lines. An id has the number of its first appearance."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def lines(self, head: str, details: object = None) -> Iterator[str]:
        """One line if it fits; otherwise the details follow, indented."""
        head = self.text(head)
        paragraphs = [] if details is None else [*self._paragraphs(_plain(details))]
        if len(paragraphs) == 1 and len(head) + len(paragraphs[0]) < _WIDTH:
            yield f"{head} {paragraphs[0]}"
            return
        yield head
        for paragraph in paragraphs:
            yield from _WRAPPED.wrap(paragraph)

    def text(self, text: str) -> str:
        text = _ID.sub(lambda found: self._ids.setdefault(found[0], f"<{len(self._ids) + 1}>"), text)
        text = _ISO.sub(lambda found: _since(datetime.fromisoformat(found[0]).timestamp() * 1000), text)
        text = _MICROSECONDS.sub(lambda found: _since(int(found[0]) / 1000), text)
        text = _MILLISECONDS.sub(lambda found: _since(int(found[0])), text)
        return _SECONDS.sub(lambda found: _since(int(found[0]) * 1000), text)

    def _paragraphs(self, value: object) -> Iterator[str]:
        """The short members of an object together, and each other one by itself."""
        if not isinstance(value, dict):
            yield from map(self.text, map(_flat, value if isinstance(value, list) else [value]))
            return
        members = {name: self.text(_flat(each)) for name, each in sorted(value.items())}
        if short := [f"{name}: {text}" for name, text in members.items() if len(text) <= _SHORT]:
            yield ", ".join(short)
        for name, text in members.items():
            if len(text) > _SHORT:
                each = value[name]
                if isinstance(each, list) and all(isinstance(one, dict) for one in each):
                    yield from (f"{name}: {self.text(_flat(one))}" for one in each)
                else:
                    yield f"{name}: {text}"


def without_times_and_ids(text: str) -> str:
    for pattern in (_ID, _ISO, _MICROSECONDS, _MILLISECONDS, _SECONDS):
        text = pattern.sub("…", text)
    return text


def request_of(request: Mapping[str, Any]) -> object:
    """A request without placeholders and DynamoDB's types."""
    names = request.get("ExpressionAttributeNames", {})
    values = {name: _read(value) for name, value in request.get("ExpressionAttributeValues", {}).items()}

    def meant(found: re.Match[str]) -> str:
        word = found[0]
        if word in values:
            return json.dumps(_plain(values[word]), sort_keys=True)
        return str(names.get(word, word))

    made: dict[str, Any] = {}
    for name, value in request.items():
        if name.startswith("ExpressionAttribute") or (name, value) == ("TableName", JOBS_TABLE):
            continue
        if name.endswith("Expression"):
            made[name] = _PLACEHOLDER.sub(meant, value)
        elif name == "MessageBody":
            made[name] = json.loads(value)
        else:
            made[name] = _value(value)
    return made


def _value(value: Any) -> object:
    if isinstance(value, list):
        return [_value(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    if len(value) == 1 and set(value) <= _TYPES:
        return _read(dict(value))  # type: ignore[arg-type]  # it has one of the types
    return request_of(value)


def _plain(value: object) -> object:
    """Return the value as dictionaries, lists, numbers and text."""
    if isinstance(value, Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(_plain(name)): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(_plain, value), key=str)
    return value if value is None or isinstance(value, bool | int | float) else _as_text_or_number(value)


def _as_text_or_number(value: object) -> object:
    match value:
        case Enum():
            return value.value
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case Binary():
            return f"{len(value.value)} bytes"  # type: ignore[attr-defined]  # the stubs lack it
        case datetime():
            return value.astimezone(UTC).isoformat()
        case BaseException():
            return f"{type(value).__name__}: {value}"
    return _FRAME.sub(lambda frame: f"[{frame[2]}] " if "/tests/" in frame[1] else "", str(value))


def _flat(value: object) -> str:
    """Return the value as JSON without quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_flat(each)}" for name, each in sorted(value.items())) + "}"
    if isinstance(value, list):
        members = [*map(_flat, value)]
        if len(members) > _MANY:
            members[1:-1] = [f"… {len(members) - 2} more"]
        return "[" + ", ".join(members) + "]"
    return value if isinstance(value, str) else json.dumps(value)


def _since(ms: float) -> str:
    """Since the beginning: `<+0.02s>`."""
    seconds = (ms - BEGINNING_MS) / 1000
    return f"<{seconds:+.3f}".rstrip("0").rstrip(".") + "s>"
