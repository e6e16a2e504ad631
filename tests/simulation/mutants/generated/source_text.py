"""The text of one module, with the places that `ast` gives as lines and bytes."""

import ast
import re
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

    def described(self, change: Change) -> str:
        old = self.text[change.start : change.end]
        return f"{_short(old)} -> {_short(change.new)}" if old else f"add {_short(change.new)}"

    def _offset(self, line: int, column_bytes: int) -> int:
        before = self._lines[line - 1].encode()[:column_bytes].decode()
        return self._starts[line - 1] + len(before)


def _short(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
