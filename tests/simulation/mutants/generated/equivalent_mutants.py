"""Mutants that change no behaviour, each with the reason, in the files of `equivalent`: one for each package."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.simulation.mutants.generated.generate import GeneratedMutant

_FOLDER: Final = Path(__file__).with_name("equivalent")


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Why a mutant changes no behaviour."""

    reason: str
    #: The description of the mutant. If the code changes so that the id names another change, the reason lapses.
    change: str

    def fits(self, mutant: GeneratedMutant | None) -> bool:
        return mutant is not None and mutant.description == self.change


def equivalents() -> Mapping[str, Equivalent]:
    """By id of the mutant."""
    files = (tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.toml")))
    return {name: Equivalent(**entry) for file in files for name, entry in file.items()}
