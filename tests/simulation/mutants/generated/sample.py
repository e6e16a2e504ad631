"""A seeded sample. The rank of a mutant depends on its id alone, so a change of the code moves few others in or out."""

import hashlib
from collections.abc import Iterable

from tests.simulation.mutants.generated.generate import GeneratedMutant


def sample(mutants: Iterable[GeneratedMutant], *, count: int, seed: str) -> list[GeneratedMutant]:
    """At most one mutant of each line, so that no long expression has a larger share than others."""

    def rank(mutant: GeneratedMutant) -> bytes:
        return hashlib.sha256(f"{seed}:{mutant.id}".encode()).digest()

    chosen: dict[tuple[str, int], GeneratedMutant] = {}
    for mutant in sorted(mutants, key=rank):
        chosen.setdefault((mutant.module, mutant.line), mutant)
        if len(chosen) == count:
            break
    return list(chosen.values())
