"""Whether a value reads back as what it was: only then it is recorded."""

from datetime import UTC, datetime
from typing import Any, Final

#: The equality of a class that defines none.
_IDENTITY: Final[Any] = object.__eq__


def require_equal(value: Any, read: Any) -> None:
    """Raises `ValueError` with the first path at which `read`, decoded from the JSON of `value`, is another value.

    A tuple is an array, and may come back as a list. Of a time with a zone, the instant counts.
    """
    if found := _difference(value, read, ""):
        raise ValueError(found)


def _difference(value: Any, read: Any, path: str) -> str | None:
    if _equal(value, read):
        return None
    if type(value) is tuple and isinstance(read, list):
        value = list(value)
    if isinstance(value, dict) and isinstance(read, dict):
        return _of_members(value, read, path)
    if type(value) is type(read) is list and len(value) == len(read):
        pairs = zip(value, read, strict=True)
        found = (_difference(one, other, f"{path}/{place}") for place, (one, other) in enumerate(pairs))
        return next(filter(None, found), None)
    if type(value) is type(read) and hasattr(value, "__dict__"):
        names = [name for name in vars(read) if name in vars(value) and not name.startswith("_")]
        found = (_difference(vars(value)[name], vars(read)[name], f"{path}/{name}") for name in names)
        inner = next(filter(None, found), None)
        if inner or type(value).__eq__ is _IDENTITY or (len(names) == len(vars(value)) and _rest(value) == _rest(read)):
            return inner
    other = "another" if type(value) is type(read) else f"a {type(read).__name__}"
    return f"{path or 'the value'} is a {type(value).__name__}, and reads back as {other}"


def _of_members(value: dict[Any, Any], read: dict[Any, Any], path: str) -> str | None:
    for name, member in value.items():
        if name not in read:
            why = "is lost" if isinstance(name, str) else "is not text, and a name of JSON is"
            return f"the name {name!r} of {path or 'the value'} {why}"
        if found := _difference(member, read[name], f"{path}/{name}"):
            return found
    added = next((name for name in read if name not in value), None)
    return None if added is None else f"{path}/{added} comes on top"


def _rest(value: Any) -> Any:
    """What a model keeps beside its attributes."""
    return [getattr(value, name, None) or None for name in ("__pydantic_private__", "__pydantic_extra__")]


def _equal(value: Any, read: Any) -> bool:
    if isinstance(value, datetime) and isinstance(read, datetime) and value.tzinfo and read.tzinfo:
        # In the hour that the end of summer time repeats, times of two zones are never equal.
        return value.astimezone(UTC) == read.astimezone(UTC)
    return bool(value == read)
