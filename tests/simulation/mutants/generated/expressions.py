"""Mutation of expressions: conditions, arithmetic, constants, members of enums, and elements of collections."""

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.simulation.mutants.generated.source_text import Change, SourceText

_PAIRS: Final = (("<=", "<"), (">=", ">"), ("==", "!="), ("is", "is not"), ("in", "not in"))
_COMPARISONS: Final = dict(_PAIRS) | {new: old for old, new in _PAIRS}
_ARITHMETIC: Final[Mapping[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
}
#: One more or less of a larger number, a size or a time, keeps every promise.
_LARGEST_COUNT: Final = 8
_EXTREMES: Final = {"max": "min", "min": "max"}
#: Without these, DynamoDB refuses every request, which shows nothing.
_NEEDED: Final = frozenset(
    ("Key", "TableName", "UpdateExpression", "ConditionExpression", "KeyConditionExpression", "IndexName")
) | {"ExpressionAttributeNames", "ExpressionAttributeValues"}


def conditions(source: SourceText, test: ast.expr, *, loop: bool = False) -> Iterator[Change]:
    """A condition that is negated, or has always one value; but no loop without an end."""
    start, end = source.start(test), source.end(test)
    yield Change("negate-condition", start, end, f"not ({source.of(test)})")
    if not any(isinstance(node, ast.NamedExpr) for node in ast.walk(test)):
        yield Change("fix-condition", start, end, "False")
        if not loop:
            yield Change("fix-condition", start, end, "True")


def operands(source: SourceText, node: ast.BoolOp) -> Iterator[Change]:
    word = " and " if isinstance(node.op, ast.And) else " or "
    for index, value in enumerate(node.values):
        rest = [*node.values[:index], *node.values[index + 1 :]]
        if not any(isinstance(one, ast.NamedExpr) for one in ast.walk(value)):
            new = word.join(f"({source.of(one)})" for one in rest)
            yield Change("drop-operand", source.start(node), source.end(node), f"({new})")


def merged(source: SourceText, node: ast.BinOp) -> Iterator[Change]:
    """Either side of `a | b`, mostly two dicts of attributes."""
    for side in (node.left, node.right):
        yield Change("drop-operand", source.start(node), source.end(node), f"({source.of(side)})")


def comparison(source: SourceText, node: ast.Compare) -> Iterator[Change]:
    left = node.left
    for right in node.comparators:
        start, end = source.end(left), source.start(right)
        found = re.search(r"is not|not in|is|in|<=|>=|==|!=|<|>", source.text[start:end])
        if found:
            new = _COMPARISONS[found[0]]
            yield Change("swap-comparison", start + found.start(), start + found.end(), new)
        left = right


def arithmetic(source: SourceText, node: ast.BinOp) -> Iterator[Change]:
    if type(node.op) not in _ARITHMETIC or any(_is_sequence(side) for side in (node.left, node.right)):
        return
    sign, new = _ARITHMETIC[type(node.op)]
    start = source.end(node.left)
    at = source.text.index(sign, start)
    yield Change("swap-arithmetic", at, at + 1, new)


def extreme(source: SourceText, node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Name) and (new := _EXTREMES.get(node.func.id)):
        yield Change("swap-arithmetic", source.start(node.func), source.end(node.func), new)


def constant(source: SourceText, node: ast.Constant, *, measure: bool) -> Iterator[Change]:
    """`measure` for a number that is a time or a size, however small."""
    value, start, end = node.value, source.start(node), source.end(node)
    if isinstance(value, bool):
        yield Change("swap-flag", start, end, str(not value))
    elif isinstance(value, int | float):
        counted = isinstance(value, int) and value <= _LARGEST_COUNT and not measure
        for new in dict.fromkeys((value + 1, value - 1, value * 2, 0) if counted else (value * 2, 0)):
            if new != value:
                yield Change("swap-number", start, end, f"({new!r})" if new < 0 else repr(new))


def member(source: SourceText, node: ast.Attribute, enums: Mapping[str, Sequence[str]]) -> Iterator[Change]:
    """`State.QUEUED` becomes the next member, and the one before."""
    if isinstance(node.value, ast.Name) and node.attr in (members := enums.get(node.value.id, ())):
        at = members.index(node.attr)
        for sibling in dict.fromkeys((members[(at + 1) % len(members)], members[at - 1])):
            if sibling != node.attr:
                end = source.end(node)
                yield Change("swap-member", end - len(node.attr), end, sibling)


def elements(source: SourceText, node: ast.List | ast.Set | ast.Tuple) -> Iterator[Change]:
    empty = {ast.List: "[]", ast.Set: "set()", ast.Tuple: "()"}[type(node)]
    if len(node.elts) == 1:
        yield Change("drop-element", source.start(node), source.end(node), empty)
        return
    starts = [source.start(one) for one in node.elts]
    ends = [source.end(one) for one in node.elts]
    for change in _without(source, starts, ends, "drop-element"):
        # Parentheses around a single element make a tuple only with a comma.
        comma = "," if isinstance(node, ast.Tuple) and source.text[ends[-1]] != "," and change.end == ends[-1] else ""
        yield Change(change.operator, change.start, change.end, comma)


def entries(source: SourceText, node: ast.Dict) -> Iterator[Change]:
    starts = [
        source.start(key) if key else source.text.rindex("**", 0, source.start(value))
        for key, value in zip(node.keys, node.values, strict=True)
    ]
    ends = [source.end(value) for value in node.values]
    if len(starts) == 1:
        yield Change("drop-entry", source.start(node), source.end(node), "{}")
        return
    changes = list(_without(source, starts, ends, "drop-entry"))
    for key, change in zip(node.keys, changes, strict=True):
        name = key.value if isinstance(key, ast.Constant) else None
        if not (isinstance(name, str) and (name in _NEEDED or name.startswith((":", "#")))):
            yield change


def _without(source: SourceText, starts: list[int], ends: list[int], operator: str) -> Iterator[Change]:
    """For all but the last one, the comma after it goes too; for the last one, the comma before it."""
    for start, following in itertools.pairwise(starts):
        yield Change(operator, start, following, "")
    yield Change(operator, ends[-2], ends[-1], "")


def _is_sequence(node: ast.expr) -> bool:
    """A text or a list, for which the other operator only raises."""
    return isinstance(node, ast.JoinedStr | ast.List | ast.ListComp | ast.Tuple) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
