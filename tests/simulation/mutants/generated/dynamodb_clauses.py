"""Mutation of DynamoDB expressions, which are string literals: clauses of conditions, and steps of counters."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.simulation.mutants.generated.source_text import Change, SourceText

_CLAUSE: Final = re.compile(r"attribute_(?:not_)?exists\(|(?:=|<>|<=|<|>=|>) :|IN \(")
_STEP: Final = re.compile(r"(?<= )[+-](?= :)")
_NAME: Final = re.compile(r"#(?:\w+|\{\w+\})")
_LITERAL: Final = re.compile(r'(f?)"([^"\n]*)"')
_OPERATORS: Final = re.compile(
    r"(?<= )(?:<=|>=|<>|=|<|>)(?= [:{])|attribute_not_exists|attribute_exists|(?<= )OR(?= )|(?<= )AND(?= )"
)
_PAIRS: Final = (("<=", "<"), (">=", ">"), ("=", "<>"), ("attribute_exists", "attribute_not_exists"), ("AND", "OR"))
_SWAPPED: Final = dict(_PAIRS) | {new: old for old, new in _PAIRS}


def clause_changes(source: SourceText, node: ast.Constant | ast.JoinedStr) -> Iterator[Change]:
    """DynamoDB refuses a name that nothing uses, so a dropped clause stays in a form that always holds."""
    literal = _LITERAL.fullmatch(source.of(node))
    if not literal:
        return
    start, text = source.start(node) + literal.start(2), literal[2]
    if text.strip() in {"AND", "OR"}:
        yield Change("swap-clause-operator", start, start + len(text), f" {_SWAPPED[text.strip()]} ")
    if not _NAME.search(text):
        return
    for found in _STEP.finditer(text):
        yield Change("swap-step", start + found.start(), start + found.end(), "-" if found[0] == "+" else "+")
    if not _CLAUSE.search(text):
        return
    for at, clause in _clauses(text):
        if name := _NAME.search(clause):
            always = f"({clause} OR attribute_exists({name[0]}) OR attribute_not_exists({name[0]}))"
            yield Change("drop-clause", start + at, start + at + len(clause), always)
    for found in _OPERATORS.finditer(text):
        yield Change("swap-clause-operator", start + found.start(), start + found.end(), _SWAPPED[found[0]])


def _clauses(text: str) -> Iterator[tuple[int, str]]:
    if "(" in text:
        yield 0, text
        return
    at = 0
    for clause in text.split(" AND "):
        yield at, clause
        at += len(clause) + len(" AND ")
