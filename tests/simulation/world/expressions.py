"""DynamoDB expressions, parsed once and evaluated against items in wire format.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from tests.simulation.world.errors import invalid

Value = Mapping[str, Any]
Item = Mapping[str, Value]

_TOKEN: Final = re.compile(r"\s*(?:([#:]?[A-Za-z0-9_]+)|(<=|>=|<>|[=<>(),.\[\]+-]))")
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
_RESERVED: Final = frozenset(ReservedKeywords.get_reserved_keywords())
_COMPARISONS: Final = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_EQUALITY: Final = frozenset({"=", "<>"})
_FUNCTIONS: Final = frozenset(
    {"attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size"}
)


class Scope:
    """The item, names and values for one expression."""

    __slots__ = ("item", "names", "values")

    def __init__(self, item: Item, names: Mapping[str, str], values: Mapping[str, Value]) -> None:
        self.item = item
        self.names = names
        self.values = values


#: From a scope to a value; None for a missing attribute.
Operand = Callable[[Scope], Value | None]
Condition = Callable[[Scope], bool]
Path = tuple[str | int, ...]


def number(value: Value) -> Decimal | int:
    text = value["N"]
    return int(text) if text.lstrip("-").isdigit() else Decimal(text)


def tokens(text: str) -> list[str]:
    found, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise invalid(f"Invalid expression: syntax error near {text[position : position + 12]!r}")
        found.append(match.group(1) or match.group(2))
        position = match.end()
    return found


class Reader:
    """Reads the tokens of an expression and collects its placeholders."""

    def __init__(self, text: str) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self.placeholders: set[str] = set()

    @property
    def next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    @property
    def word(self) -> str:
        return self.next.upper()

    def take(self, expected: str = "") -> str:
        token = self.next
        if not token or (expected and token.upper() != expected):
            raise invalid(f"Invalid expression: expected {expected or 'more'}, got {token or 'the end'!r}")
        self._at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.word == token:
            self._at += 1
            return True
        return False

    def path(self) -> Path:
        steps: list[str | int] = [self._name()]
        while True:
            if self.accept("."):
                steps.append(self._name())
            elif self.accept("["):
                steps.append(int(self.take()))
                self.take("]")
            else:
                return tuple(steps)

    def value(self) -> str:
        token = self.take()
        if not token.startswith(":"):
            raise invalid(f"Invalid expression: expected a value, got {token!r}")
        self.placeholders.add(token)
        return token

    def _name(self) -> str:
        token = self.take()
        if token.startswith(":"):
            raise invalid(f"Invalid expression: expected a path, got {token!r}")
        if token.startswith("#"):
            self.placeholders.add(token)
        elif token.upper() in _RESERVED:
            raise invalid(f"Attribute name is a reserved keyword; reserved keyword: {token}")
        return token

    def operand(self) -> Operand:
        if self.next.startswith(":"):
            name = self.value()
            return lambda scope: _given(scope, name)
        if self.next == "size":
            self.take()
            self.take("(")
            path = self.path()
            self.take(")")
            return lambda scope: _size(fetch(scope, path))
        path = self.path()
        return lambda scope: fetch(scope, path)


def _given(scope: Scope, name: str) -> Value:
    try:
        return scope.values[name]
    except KeyError:
        raise invalid(f"An expression attribute value used in expression is not defined: {name}") from None


def resolve(step: str | int, names: Mapping[str, str]) -> str | int:
    if isinstance(step, str) and step.startswith("#"):
        try:
            return names[step]
        except KeyError:
            raise invalid(f"An expression attribute name used in the document path is not defined: {step}") from None
    return step


def fetch(scope: Scope, path: Path) -> Value | None:
    value: Value | None = scope.item.get(str(resolve(path[0], scope.names)))
    for unresolved in path[1:]:
        step = resolve(unresolved, scope.names)
        if value is None:
            return None
        if isinstance(step, int):
            held = value.get("L", [])
            value = held[step] if step < len(held) else None
        else:
            value = value.get("M", {}).get(step)
    return value


def _size(value: Value | None) -> Value | None:
    if value is None:
        return None
    ((_, held),) = value.items()
    return {"N": str(len(held.encode() if isinstance(held, str) else held))}


def compare(left: Value | None, operator: str, right: Value | None) -> bool:
    """A missing attribute, or one of another type, is unequal to every value and has no order."""
    if left is None or right is None:
        return operator == "<>"
    ((kind, a),), ((other, b),) = left.items(), right.items()
    if kind != other:
        return operator == "<>"
    if kind == "N":
        a, b = number(left), number(right)
    elif kind in {"SS", "NS", "BS"}:
        a, b = set(a), set(b)
    if kind not in {"S", "N", "B"} and operator not in _EQUALITY:
        return False
    return bool(_COMPARISONS[operator](a, b))


@dataclass(frozen=True, slots=True)
class Parsed:
    """A condition, filter or key condition, with its placeholders."""

    holds: Condition
    placeholders: frozenset[str]


@lru_cache(maxsize=4096)
def condition(text: str) -> Parsed:
    reader = Reader(text)
    holds = _either(reader)
    if reader.next:
        raise invalid(f"Invalid expression: syntax error at {reader.next!r}")
    return Parsed(holds, frozenset(reader.placeholders))


def _either(reader: Reader) -> Condition:
    parts = [_both(reader)]
    while reader.accept("OR"):
        parts.append(_both(reader))
    return parts[0] if len(parts) == 1 else lambda scope: any(part(scope) for part in parts)


def _both(reader: Reader) -> Condition:
    parts = [_not(reader)]
    while reader.accept("AND"):
        parts.append(_not(reader))
    return parts[0] if len(parts) == 1 else lambda scope: all(part(scope) for part in parts)


def _not(reader: Reader) -> Condition:
    if reader.accept("NOT"):
        part = _not(reader)
        return lambda scope: not part(scope)
    if reader.accept("("):
        part = _either(reader)
        reader.take(")")
        return part
    if reader.next in _FUNCTIONS - {"size"}:
        return _function(reader)
    return _comparison(reader)


def _comparison(reader: Reader) -> Condition:
    left = reader.operand()
    if reader.accept("BETWEEN"):
        low = reader.operand()
        reader.take("AND")
        high = reader.operand()
        return lambda scope: compare(left(scope), ">=", low(scope)) and compare(left(scope), "<=", high(scope))
    if reader.accept("IN"):
        reader.take("(")
        options = [reader.operand()]
        while reader.accept(","):
            options.append(reader.operand())
        reader.take(")")
        return lambda scope: any(compare(left(scope), "=", option(scope)) for option in options)
    operator = reader.take()
    if operator not in _COMPARISONS:
        raise invalid(f"Invalid expression: {operator!r} is not a comparator")
    right = reader.operand()
    return lambda scope: compare(left(scope), operator, right(scope))


def _function(reader: Reader) -> Condition:
    name = reader.take()
    reader.take("(")
    path = reader.path()
    if name in {"attribute_exists", "attribute_not_exists"}:
        reader.take(")")
        return lambda scope: (fetch(scope, path) is not None) is (name == "attribute_exists")
    reader.take(",")
    operand = reader.operand()
    reader.take(")")
    tests = {"begins_with": _begins, "contains": _contains, "attribute_type": _is_of_type}
    return lambda scope: tests[name](fetch(scope, path), operand(scope))


def _begins(value: Value | None, prefix: Value | None) -> bool:
    return bool(value and prefix and "S" in value and value["S"].startswith(prefix.get("S", "\0")))


def _contains(value: Value | None, part: Value | None) -> bool:
    if not value or not part:
        return False
    ((kind, held),), ((of, wanted),) = value.items(), part.items()
    if kind == "L":
        return any(compare(entry, "=", part) for entry in held)
    if kind in {"SS", "NS", "BS"}:
        return of == kind[0] and wanted in held
    return kind == of == "S" and wanted in held


def _is_of_type(value: Value | None, kind: Value | None) -> bool:
    return bool(value and kind and kind["S"] in value)
