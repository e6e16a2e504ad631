"""Which stories and seeds reach the block of a mutant. Every other one goes as without the mutant, so it is not played.

One run of all of them on the unbroken engine notes it. Code that runs while a module is imported counts as reached by
every one.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.simulation.mutants.generated.blocks import Block, BlockNotes, SmallestBlocks
from tests.simulation.mutants.generated.forks import in_forks
from tests.simulation.mutants.generated.generate import GeneratedMutant
from tests.simulation.mutants.generated.plays import Play, fault_of, plays


class ReachedPlays:
    """Finds the plays of `every` that reach each block."""

    def __init__(self, reached: Mapping[Block, Sequence[Play]], *, every: Sequence[Play]) -> None:
        self._every = every
        self._reached = reached
        self._blocks = SmallestBlocks(reached)

    def of(self, mutant: GeneratedMutant, *, most_seeds: int | None = None) -> Sequence[Play]:
        """The stories, and then the first seeds. All of them for code outside functions."""
        block = self._blocks.around(mutant)
        found = self._every if block is None else self._reached[block]
        stories = [play for play in found if isinstance(play, str)]
        return [*stories, *[play for play in found if not isinstance(play, str)][:most_seeds]]


def reached_plays(path: Path, *, seeds: int, processes: int) -> ReachedPlays:
    """Read them from the file, or find them out and write it. The name of the file stands for the tree."""
    every = plays(seeds)
    if not path.exists():
        path.with_suffix(".part").write_text(json.dumps(_run(every, processes)), encoding="utf-8")
        path.with_suffix(".part").replace(path)
    rows = json.loads(path.read_text(encoding="utf-8"))
    reached = {(module, first, last): [every[number] for number in found] for module, first, last, found in rows}
    return ReachedPlays(reached, every=every)


def _run(every: Sequence[Play], processes: int) -> list[tuple[str, int, int, list[int]]]:
    """Each process takes every n-th. Those that reach a block are named by their numbers."""
    merged: dict[Block, set[int]] = defaultdict(set)
    parts = [range(number, len(every), processes) for number in range(processes)]
    for part in in_forks(parts, lambda own, _end: json.dumps(_noted(own, every)), processes=processes):
        for module, first, last, found in json.loads(part.result()):
            merged[module, first, last].update(found)
    return [(*block, sorted(found)) for block, found in sorted(merged.items())]


def _noted(own: Sequence[int], every: Sequence[Play]) -> list[tuple[str, int, int, list[int]]]:
    """In a process that has not imported the engine."""
    notes = BlockNotes()
    # The first world imports the rest of the engine.
    fault_of(every[own[0]])
    first_time = set(notes.hits)
    reached: dict[int, list[int]] = {number: [] for number in range(len(notes.blocks))}
    for play in own:
        notes.hits.clear()
        if (fault := fault_of(every[play])) is not None:
            raise AssertionError(f"it fails without any mutant: {fault}")
        if play == own[0]:
            imported = first_time - set(notes.hits)
        for number in notes.hits:
            reached[number].append(play)
    for number in imported:
        reached[number] = list(range(len(every)))
    return [(*notes.blocks[number], found) for number, found in reached.items()]
