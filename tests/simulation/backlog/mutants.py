"""Faults of adaptive limits that keep a backlog from draining in time."""

from typing import Final

from tests.simulation.mutants.apply import Mutant

_ADAPTIVE: Final = "tidemill.domain.limits.adaptive_limit"

MUTANTS: Final = (
    Mutant(
        "every run raises the number",
        _ADAPTIVE,
        "change_after",
        "sample.trouble or (Trouble.SLOW if sample.seconds > bounds.target_seconds else None)",
        "None",
    ),
    Mutant("the number never rises", _ADAPTIVE, "change_after", "found >= bounds.ceiling", "found"),
    Mutant(
        "a free slot waits for wake",
        "tidemill.application.waiting.release",
        "Releaser.leave",
        "line_stands or self._handed_over(slot, lowered)",
        "self._handed_over(slot, lowered) and line_stands",
    ),
)
