"""Update expressions: every right-hand side is read from the item before the update; all changes apply together.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from tests.simulation.world.errors import invalid
from tests.simulation.world.expressions import Item, Operand, Path, Reader, Scope, Value, fetch, number, resolve

_CLAUSES: Final = ("SET", "REMOVE", "ADD", "DELETE")


@dataclass(frozen=True, slots=True)
class _Action:
    path: Path
    #: None removes the attribute.
    value: Operand | None


@dataclass(frozen=True, slots=True)
class Update:
    """A parsed update expression."""

    actions: tuple[_Action, ...]
    placeholders: frozenset[str]

    def names(self, aliases: Mapping[str, str]) -> set[str]:
        """The top-level attributes that it writes."""
        return {str(resolve(action.path[0], aliases)) for action in self.actions}

    def applied(self, scope: Scope) -> dict[str, Any]:
        """The item after the update."""
        after: dict[str, Any] = dict(scope.item)
        paths = [tuple(resolve(step, scope.names) for step in action.path) for action in self.actions]
        for index, path in enumerate(paths):
            if any(path[: len(other)] == other for other in paths[:index] + paths[index + 1 :]):
                raise invalid("Invalid UpdateExpression: Two document paths overlap with each other")
        values = [action.value(scope) if action.value else None for action in self.actions]
        for path, value in zip(paths, values, strict=True):
            _write(after, path, value)
        return after


@lru_cache(maxsize=4096)
def update(text: str) -> Update:
    reader = Reader(text)
    actions: list[_Action] = []
    seen: set[str] = set()
    while reader.next:
        clause = reader.take().upper()
        if clause not in _CLAUSES or clause in seen:
            raise invalid(f"Invalid UpdateExpression: the {clause!r} section is unknown or comes twice")
        seen.add(clause)
        actions.append(_action(reader, clause))
        while reader.accept(","):
            actions.append(_action(reader, clause))
    if not actions:
        raise invalid("Invalid UpdateExpression: The expression can not be empty")
    return Update(tuple(actions), frozenset(reader.placeholders))


def _action(reader: Reader, clause: str) -> _Action:
    path = reader.path()
    if clause == "REMOVE":
        return _Action(path, None)
    if clause == "SET":
        reader.take("=")
        return _Action(path, _sum(reader))
    name = reader.value()
    combine = _added if clause == "ADD" else _deleted
    return _Action(path, lambda scope: combine(fetch(scope, path), scope.values[name]))


def _sum(reader: Reader) -> Operand:
    left = _term(reader)
    if reader.next not in {"+", "-"}:
        return left
    sign = 1 if reader.take() == "+" else -1
    right = _term(reader)

    def total(scope: Scope) -> Value:
        a, b = left(scope), right(scope)
        if not a or not b or "N" not in a or "N" not in b:
            raise invalid("An operand in the update expression has an incorrect data type or is missing")
        return {"N": str(number(a) + sign * number(b))}

    return total


def _term(reader: Reader) -> Operand:
    if reader.next not in {"if_not_exists", "list_append"}:
        operand = reader.operand()

        def there(scope: Scope) -> Value:
            value = operand(scope)
            if value is None:
                raise invalid("The provided expression refers to an attribute that does not exist in the item")
            return value

        return there
    name = reader.take()
    reader.take("(")
    left = _term(reader) if name == "list_append" and reader.next == "if_not_exists" else reader.operand()
    reader.take(",")
    right = _term(reader)
    reader.take(")")
    if name == "if_not_exists":
        return lambda scope: left(scope) or right(scope)
    return _appended(left, right)


def _appended(left: Operand, right: Operand) -> Callable[[Scope], Value]:
    def joined(scope: Scope) -> Value:
        a, b = left(scope), right(scope)
        if not a or not b or "L" not in a or "L" not in b:
            raise invalid("An operand in the update expression has an incorrect data type")
        return {"L": [*a["L"], *b["L"]]}

    return joined


def _added(held: Value | None, given: Value) -> Value:
    ((kind, value),) = given.items()
    if kind == "N":
        return {"N": str((number(held) if held else 0) + number(given))}
    if kind not in {"SS", "NS", "BS"}:
        raise invalid("Incorrect operand type for operator or function; operator: ADD")
    return {kind: sorted({*(held[kind] if held else ()), *value})}


def _deleted(held: Value | None, given: Value) -> Value | None:
    ((kind, value),) = given.items()
    left = sorted({*(held[kind] if held else ())} - {*value})
    return {kind: left} if left else None


def _write(item: dict[str, Any], path: tuple[str | int, ...], value: Value | None) -> None:
    """Copies nested values before it changes them, since items share them."""
    name, rest = str(path[0]), path[1:]
    if not rest:
        if value is None:
            item.pop(name, None)
        else:
            item[name] = value
        return
    if name not in item:
        raise invalid("The document path provided in the update expression is invalid for update")
    item[name] = _rewritten(item[name], rest, value)


def _rewritten(held: Value, path: tuple[str | int, ...], value: Value | None) -> Value:
    step, rest = path[0], path[1:]
    held_as = "L" if isinstance(step, int) else "M"
    if held_as not in held or (rest and not _leads_on(held[held_as], step)):
        raise invalid("The document path provided in the update expression is invalid for update")
    if isinstance(step, int):
        entries = list(held["L"])
        if rest:
            entries[step] = _rewritten(entries[step], rest, value)
        elif value is None:
            del entries[step : step + 1]
        else:
            entries[step : step + 1] = [value]
        return {"L": entries}
    fields = dict(held["M"])
    if rest:
        fields[step] = _rewritten(fields[step], rest, value)
    elif value is None:
        fields.pop(step, None)
    else:
        fields[step] = value
    return {"M": fields}


def _leads_on(held: Any, step: str | int) -> bool:
    return step < len(held) if isinstance(step, int) else step in held


__all__ = ["Item", "Update", "update"]
