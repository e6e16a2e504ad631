"""Faults of adaptive limits that keep a backlog from draining in time."""

from typing import Final

from tests.simulation.mutants.apply import Mutant

_ADAPTIVE: Final = "tidemill.domain.adaptive_limit"

MUTANTS: Final = (
    Mutant(
        "every run raises the number",
        _ADAPTIVE,
        "trouble = sample.trouble or (Trouble.SLOW if sample.seconds > bounds.target_seconds else None)",
        "trouble = None",
    ),
    Mutant("the number never rises", _ADAPTIVE, "if found >= bounds.ceiling or", "if found or"),
    Mutant(
        "a free slot waits for wake",
        "tidemill.application.release",
        "if line_stands or self._handed_over(slot, lowered):",
        "if self._handed_over(slot, lowered) and line_stands:",
    ),
)
