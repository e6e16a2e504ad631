"""The text of one module, with the places that `ast` gives as lines and bytes."""

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

_LONGEST: Final = 90


@dataclass(frozen=True, slots=True)
class Change:
    """The characters from `start` to `end` become `new`."""

    operator: str
    start: int
    end: int
    new: str


class SourceText:
    """Text of a module."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0, *accumulate(len(line) for line in self._lines)]
        self._parts = [0, *sorted(self._begins(ast.parse(text))), len(text)]

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    def of(self, node: ast.expr | ast.stmt) -> str:
        return self.text[self.start(node) : self.end(node)]

    def line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def replaced(self, change: Change) -> str:
        return self.text[: change.start] + change.new + self.text[change.end :]

    def part(self, change: Change, *, changed: bool) -> tuple[int, str]:
        """Where the part around the change begins, and its text before or after it.

        A part is a method, or another statement of the module or of one of its classes. Its text can be parsed alone.
        """
        begin = self._parts[bisect_right(self._parts, change.start) - 1]
        end = self._parts[bisect_left(self._parts, max(change.end, begin + 1))]
        new = self.text[begin : change.start] + change.new + self.text[change.end : end]
        text = new if changed else self.text[begin:end]
        return begin, f"class _:\n{text}" if text[:1].isspace() else text

    def described(self, change: Change) -> str:
        old = self.text[change.start : change.end]
        return f"{_short(old)} -> {_short(change.new)}" if old else f"add {_short(change.new)}"

    def _begins(self, block: ast.Module | ast.ClassDef) -> Iterator[int]:
        """The first character of the line with which each part of the block begins."""
        for statement in block.body:
            first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
            yield self._starts[first - 1]
            if isinstance(statement, ast.ClassDef):
                yield from self._begins(statement)

    def _offset(self, line: int, column_bytes: int) -> int:
        before = self._lines[line - 1].encode()[:column_bytes].decode()
        return self._starts[line - 1] + len(before)


def _short(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
