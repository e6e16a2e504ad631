"""The blocks of code of the mutated modules, and which of them run.

The first statement of each block notes its number. A mutant changes nothing unless the block that it is in runs.
"""

import ast
import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Final

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.generated.generate import GeneratedMutant, mutated_files, name_of

_NOTE: Final = "__tidemill_reached__"
#: Fields of a statement that hold a block.
_BLOCKS: Final = ("body", "orelse", "finalbody")

#: Module, and the first and last line of a block.
Block = tuple[str, int, int]


class BlockNotes:
    """Notes which blocks of the engine run in this process, which has not imported it."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        #: The numbers of the blocks that ran since the last `clear()`.
        self.hits: set[int] = set()
        setattr(builtins, _NOTE, self.hits.add)
        for path in mutated_files():
            apply(_Noting(name_of(path), self.blocks))


class SmallestBlocks:
    """Finds the smallest of some blocks that a mutant is in."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._by_module: dict[str, list[Block]] = defaultdict(list)
        for block in blocks:
            self._by_module[block[0]].append(block)

    def around(self, mutant: GeneratedMutant) -> Block | None:
        """None for code outside functions."""
        around = [block for block in self._by_module[mutant.module] if block[1] <= mutant.line <= block[2]]
        return min(around, key=lambda block: block[2] - block[1], default=None)


@dataclass(frozen=True, slots=True)
class _Noting:
    """A change to one module: each block notes its number. It changes no behaviour."""

    module: str
    blocks: list[Block]

    def code(self, path: str) -> CodeType:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                for block in [*_nested(function)]:
                    end = block[-1].end_lineno or block[-1].lineno
                    note = ast.parse(f"{_NOTE}({len(self.blocks)})").body
                    self.blocks.append((self.module, block[0].lineno, end))
                    block[:0] = note
        return compile(ast.fix_missing_locations(tree), path, "exec")


def _nested(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The blocks of this function, without those of functions in it."""
    for name in _BLOCKS:
        if block := getattr(node, name, None):
            yield block
            for statement in block:
                if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                    yield from _nested(statement)
    for part in [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]:
        yield from _nested(part)
