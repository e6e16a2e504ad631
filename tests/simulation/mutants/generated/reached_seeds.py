"""Which seeds reach the block of a mutant. Every other seed runs as without the mutant, so it need not be simulated.

One run of all seeds on the unbroken engine notes it. Code that runs while a module is imported counts as reached by
every seed.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.simulation.mutants.generated.blocks import Block, BlockNotes, SmallestBlocks
from tests.simulation.mutants.generated.forks import in_forks
from tests.simulation.mutants.generated.generate import GeneratedMutant


class ReachedSeeds:
    """The seeds below `seeds` that reach each block."""

    def __init__(self, reached: Mapping[Block, Sequence[int]], *, seeds: int) -> None:
        self._seeds = seeds
        self._reached = reached
        self._blocks = SmallestBlocks(reached)

    def of(self, mutant: GeneratedMutant) -> Sequence[int]:
        """In ascending order. All of them for code outside functions."""
        block = self._blocks.around(mutant)
        return range(self._seeds) if block is None else self._reached[block]


def reached_seeds(path: Path, *, seeds: int, processes: int) -> ReachedSeeds:
    """Read them from the file, or find them out and write it. The name of the file stands for the tree."""
    if not path.exists():
        path.with_suffix(".part").write_text(json.dumps(_run(seeds, processes)), encoding="utf-8")
        path.with_suffix(".part").replace(path)
    rows = json.loads(path.read_text(encoding="utf-8"))
    return ReachedSeeds({(module, first, last): found for module, first, last, found in rows}, seeds=seeds)


def _run(seeds: int, processes: int) -> list[tuple[str, int, int, list[int]]]:
    """Each process takes every n-th seed."""
    merged: dict[Block, set[int]] = defaultdict(set)
    parts = [range(number, seeds, processes) for number in range(processes)]
    for part in in_forks(parts, lambda own, _end: json.dumps(_noted(own, seeds)), processes=processes):
        for module, first, last, found in json.loads(part.result()):
            merged[module, first, last].update(found)
    return [(*block, sorted(found)) for block, found in sorted(merged.items())]


def _noted(own: Sequence[int], seeds: int) -> list[tuple[str, int, int, list[int]]]:
    """In a process that has not imported the engine."""
    notes = BlockNotes()
    from tests.simulation.run_one_seed import simulate

    # The first world imports the rest of the engine.
    simulate(own[0])
    first_time = set(notes.hits)
    reached: dict[int, list[int]] = {number: [] for number in range(len(notes.blocks))}
    for seed in own:
        notes.hits.clear()
        if (violation := simulate(seed).violation) is not None:
            raise AssertionError(f"seed {seed} fails without any mutant: {violation.check}")
        if seed == own[0]:
            imported = first_time - set(notes.hits)
        for number in notes.hits:
            reached[number].append(seed)
    for number in imported:
        reached[number] = list(range(seeds))
    return [(*notes.blocks[number], found) for number, found in reached.items()]
