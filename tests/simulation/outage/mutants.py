"""Faults of breakers that take an outage with moments in which the service works."""

from typing import Final

from tests.simulation.mutants.apply import Mutant

MUTANTS: Final = (
    Mutant(
        "a breaker that opens again begins another outage",
        "tidemill.domain.breaker",
        "outage_from=breaker.outage_from if again and breaker.outage_from > EPOCH else now,",
        "outage_from=now,",
    ),
)
