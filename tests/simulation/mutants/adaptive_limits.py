"""The number of an adaptive concurrency."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

ADAPTIVE: Final = (
    Mutant(
        "an adaptive limit ignores slow runs",
        modules.ADAPTIVE,
        "(Trouble.SLOW if sample.seconds > bounds.target_seconds else None)",
        "None",
    ),
    Mutant(
        "an adaptive limit falls at every slow run",
        modules.ADAPTIVE,
        "if another_was_first or recent or found <= bounds.floor:",
        "if found <= bounds.floor:",
    ),
    Mutant(
        "an adaptive limit falls by a defect",
        modules.MEASURED_RUN,
        "if not error_class.counts:",
        "if error_class is ErrorClass.PERMANENT:",
    ),
    Mutant(
        "an adaptive limit falls below its floor",
        modules.ADAPTIVE,
        "lowered = max(float(bounds.floor), found * DECREASE)",
        "lowered = found * DECREASE",
    ),
    Mutant(
        "an adaptive limit rises beyond its ceiling",
        modules.ADAPTIVE,
        "return min(max(allowed, self.floor), self.ceiling)",
        "return max(allowed, self.floor)",
    ),
    Mutant(
        "an adaptive limit admits one run too many",
        modules.ADAPTIVE_NUMBER,
        'f"({size} < {allowed} OR {size} < :floor)"',
        'f"({size} <= {allowed} OR {size} < :floor)"',
    ),
    Mutant(
        "a decrease is not counted",
        modules.ADAPTIVE_NUMBER,
        "write.set(FALLS, number(change.lowered.falls))",
        "write.set(FALLS, number(change.sample.entered.falls))",
    ),
    Mutant(
        "a release ignores the number",
        modules.LIMIT_STATE,
        "if (slots := self.limit.slots(self.adapted)) is not None:",
        "if (slots := self.limit.slots(None)) is not None:",
    ),
)
