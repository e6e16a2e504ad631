"""The number of an adaptive concurrency."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

ADAPTIVE: Final = (
    Mutant(
        "an adaptive limit ignores slow runs",
        modules.ADAPTIVE,
        "change_after",
        "Trouble.SLOW if sample.seconds > bounds.target_seconds else None",
        "None",
    ),
    Mutant(
        "an adaptive limit falls at every slow run",
        modules.ADAPTIVE,
        "change_after",
        "another_was_first or recent or found <= bounds.floor",
        "found <= bounds.floor",
    ),
    Mutant(
        "an adaptive limit falls by a defect",
        modules.MEASURED_RUN,
        "_trouble",
        "not error_class.counts",
        "error_class is ErrorClass.PERMANENT",
    ),
    Mutant(
        "an adaptive limit falls below its floor",
        modules.ADAPTIVE,
        "change_after",
        "max(float(bounds.floor), found * DECREASE)",
        "found * DECREASE",
    ),
    Mutant(
        "an adaptive limit rises beyond its ceiling",
        modules.ADAPTIVE,
        "Adaptive.within",
        "min(max(allowed, self.floor), self.ceiling)",
        "max(allowed, self.floor)",
    ),
    Mutant(
        "an adaptive limit admits one run too many",
        modules.ADAPTIVE_NUMBER,
        "bound",
        "f'({size} < {allowed} OR {size} < :floor)'",
        "f'({size} <= {allowed} OR {size} < :floor)'",
    ),
    Mutant(
        "a decrease is not counted",
        modules.ADAPTIVE_NUMBER,
        "change",
        "change.lowered.falls",
        "change.sample.entered.falls",
    ),
    Mutant("a release ignores the number", modules.LIMIT_STATE, "LimitState.turns", "self.adapted", "None"),
)
