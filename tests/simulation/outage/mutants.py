"""Faults of breakers that take an outage with faults of the table, or with moments in which the service works."""

from dataclasses import dataclass
from typing import Final

from tests.simulation.mutants.apply import Mutant


@dataclass(frozen=True, slots=True)
class OutageMutant:
    """The outage of `seed` breaks the bound `breaks`."""

    seed: int
    breaks: str
    mutant: Mutant


MUTANTS: Final = (
    OutageMutant(
        1,
        "began anew",
        Mutant(
            "a breaker that opens again begins another outage",
            "tidemill.domain.breakers.breaker",
            "opened",
            "breaker.outage_from if again and breaker.outage_from > EPOCH else now",
            "now",
        ),
    ),
    OutageMutant(
        842,
        "too many attempts",
        Mutant(
            "only the worker that counts the last failure opens a breaker",
            "tidemill.application.breakers.breakers",
            "Breakers._opened_if_due",
            "not rules.trips(breaker, policy) or over or now < rules.heard_at(breaker, policy)",
            "True",
        ),
    ),
    OutageMutant(
        1013,
        "too many claims",
        Mutant(
            "the line of a breaker that cannot be read is released",
            "tidemill.application.waiting.release",
            "Releaser.release_from_breaker",
            "self._breakers.holds_line",
            "self._breakers.blocks",
        ),
    ),
)
