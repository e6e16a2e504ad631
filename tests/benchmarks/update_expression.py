"""Applies an update expression to an item, as far as both builds use its language."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

Item = dict[str, Any]

_SECTION: Final = re.compile(r"\b(SET|REMOVE)\b")
_CALL: Final = re.compile(r"(if_not_exists|list_append)\((.+)\)")


def updated(item: Item, request: Mapping[str, Any]) -> Item:
    """The item after the request. Every right-hand side reads the item before it. Raises for any other language."""
    names = request.get("ExpressionAttributeNames", {})
    values = request.get("ExpressionAttributeValues", {})
    before, after = item, dict(item)
    _, *sections = _SECTION.split(request["UpdateExpression"])
    for section, text in zip(sections[::2], sections[1::2], strict=True):
        for part in _parts(text):
            if section == "REMOVE":
                after.pop(names.get(part, part), None)
            else:
                target, _, expression = part.partition(" = ")
                after[names.get(target, target)] = _value(expression, before, names, values)
    return after


def _parts(text: str) -> Iterator[str]:
    """Split at the commas that are outside of parentheses."""
    yield from (part.strip() for part in re.split(r",(?![^(]*\))", text))


def _value(text: str, item: Item, names: Mapping[str, str], values: Mapping[str, Any]) -> Any:
    if sum_ := re.fullmatch(r"(.+) ([+-]) (\S+)", text):
        left, sign, right = sum_.groups()
        terms = [int(_value(term, item, names, values)["N"]) for term in (left, right)]
        return {"N": str(terms[0] + terms[1] if sign == "+" else terms[0] - terms[1])}
    if call := _CALL.fullmatch(text):
        name, arguments = call.groups()
        # The first argument may be a call, and the second one is always a name.
        first, _, second = arguments.rpartition(", ")
        if name == "list_append":
            return {"L": _value(first, item, names, values)["L"] + _value(second, item, names, values)["L"]}
        return item.get(names.get(first, first)) or _value(second, item, names, values)
    return values[text] if text.startswith(":") else item[names.get(text, text)]
