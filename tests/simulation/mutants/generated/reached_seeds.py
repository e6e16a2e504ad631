"""Which seeds reach the line of a mutant. Every other seed runs as without the mutant, so it need not be simulated.

One run of all seeds on the unbroken engine, in which the first statement of each block of code notes its seed. Code
that runs while a module is imported counts as reached by every seed.
"""

import ast
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.generated.generate import GeneratedMutant, mutated_files, name_of

_NOTE: Final = "__tidemill_reached__"
#: Fields of a statement that hold a block.
_BLOCKS: Final = ("body", "orelse", "finalbody")

#: Module, and the first and last line of a block.
Block = tuple[str, int, int]


class ReachedSeeds:
    """The seeds below `seeds` that reach each block."""

    def __init__(self, reached: Mapping[Block, Sequence[int]], *, seeds: int) -> None:
        self._seeds = seeds
        self._by_module: dict[str, list[tuple[int, int, Sequence[int]]]] = defaultdict(list)
        for (module, first, last), found in reached.items():
            self._by_module[module].append((first, last, found))

    def of(self, mutant: GeneratedMutant) -> Sequence[int]:
        """In ascending order. All of them for code outside functions."""
        around = [block for block in self._by_module[mutant.module] if block[0] <= mutant.line <= block[1]]
        if not around:
            return range(self._seeds)
        return min(around, key=lambda block: block[1] - block[0])[2]


def reached_seeds(path: Path, *, seeds: int, processes: int) -> ReachedSeeds:
    """Read them from the file, or find them out and write it. The name of the file stands for the tree."""
    if not path.exists():
        path.with_suffix(".part").write_text(json.dumps(_run(seeds, processes)), encoding="utf-8")
        path.with_suffix(".part").replace(path)
    rows = json.loads(path.read_text(encoding="utf-8"))
    return ReachedSeeds({(module, first, last): found for module, first, last, found in rows}, seeds=seeds)


def _run(seeds: int, processes: int) -> list[tuple[Any, ...]]:
    """Each process takes every n-th seed."""
    pipes = []
    for number in range(processes):
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(read)
            with os.fdopen(write, "w", encoding="utf-8") as pipe:
                json.dump(_noted(range(number, seeds, processes), seeds), pipe)
            os._exit(0)
        os.close(write)
        pipes.append(read)
    merged: dict[Block, set[int]] = defaultdict(set)
    for read in pipes:
        with os.fdopen(read, encoding="utf-8") as pipe:
            for module, first, last, found in json.load(pipe):
                merged[module, first, last].update(found)
    for _ in pipes:
        os.wait()
    return [(*block, sorted(found)) for block, found in sorted(merged.items())]


def _noted(own: Sequence[int], seeds: int) -> list[tuple[Any, ...]]:
    """In a process that has not imported the engine."""
    blocks: list[Block] = []
    now: set[int] = set()
    for path in mutated_files():
        apply(_Noting(name_of(path), blocks, now))
    from tests.simulation.run_one_seed import simulate

    # The first world imports the rest of the engine.
    simulate(own[0])
    first_time = set(now)
    reached: dict[int, list[int]] = {number: [] for number in range(len(blocks))}
    for seed in own:
        now.clear()
        simulate(seed)
        if seed == own[0]:
            imported = first_time - now
        for number in now:
            reached[number].append(seed)
    for number in imported:
        reached[number] = list(range(seeds))
    return [(*blocks[number], found) for number, found in reached.items()]


@dataclass(frozen=True, slots=True)
class _Noting:
    """A change to one module: each block adds its number to `now`. It changes no behaviour."""

    module: str
    blocks: list[Block]
    now: set[int]

    def text(self, path: str) -> str:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                for block in [*_nested(function)]:
                    end = block[-1].end_lineno or block[-1].lineno
                    note = ast.parse(f"{_NOTE}({len(self.blocks)})").body
                    self.blocks.append((self.module, block[0].lineno, end))
                    block[:0] = note
        setattr(__import__("builtins"), _NOTE, self.now.add)
        return ast.unparse(tree)


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
