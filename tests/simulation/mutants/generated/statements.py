"""Mutation of statements: drop one, return early, catch nothing, and enter no context."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.simulation.mutants.generated.source_text import Change, SourceText

Function = ast.FunctionDef | ast.AsyncFunctionDef

#: By the beginning of a return annotation, values that a function may return early.
_EARLY: Final[Mapping[str, Sequence[str]]] = {
    "None": ("",),
    "bool": ("True", "False"),
    "int": ("0",),
    "list[": ("[]",),
    "Sequence[": ("[]",),
    "tuple[": ("()",),
    "dict[": ("{}",),
    "Mapping[": ("{}",),
    "Item": ("{}",),
    "Iterator[": ("iter(())",),
    "Iterable[": ("[]",),
}


def dropped(source: SourceText, statement: ast.stmt, *, last: bool) -> Iterator[Change]:
    """`last` for the last statement of a function. A name that is assigned once stays: all of its uses would raise."""
    match statement:
        case ast.Expr(value=ast.Constant()):
            droppable = False
        case ast.Return():
            droppable = not last
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            droppable = True
        case ast.Expr() | ast.Raise() | ast.Continue() | ast.Break() | ast.AugAssign() | ast.Delete():
            droppable = True
        case _:
            droppable = False
    if droppable:
        yield Change("drop-statement", source.start(statement), source.end(statement), "pass")


def early_returns(source: SourceText, function: Function) -> Iterator[Change]:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body or function.name == "__init__" or function.returns is None or _is_declaration(body):
        return
    first, kind = body[0], source.of(function.returns).strip('"')
    if first.lineno == function.lineno or (len(body) == 1 and isinstance(first, ast.Return | ast.Pass)):
        return
    values: Sequence[str] = next((early for begins, early in _EARLY.items() if kind.startswith(begins)), ())
    if kind.endswith("| None"):
        values = ("None",)
    at = source.start(first)
    for value in values:
        yield Change("return-early", at, at, f"return {value}".strip() + "\n" + " " * first.col_offset)


def handlers_that_catch_nothing(source: SourceText, statement: ast.Try) -> Iterator[Change]:
    for handler in statement.handlers:
        if handler.type is not None:
            yield Change("catch-nothing", source.start(handler.type), source.end(handler.type), "()")


def contexts_not_entered(source: SourceText, statement: ast.With) -> Iterator[Change]:
    if all(item.optional_vars is None for item in statement.items):
        first, last = statement.items[0].context_expr, statement.items[-1].context_expr
        if statement.lineno == last.end_lineno == first.lineno:
            yield Change("drop-context", source.start(statement), source.end(last), "if True")


def _is_declaration(body: list[ast.stmt]) -> bool:
    return all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in body)
