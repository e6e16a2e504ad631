"""The catalogue: what could be wrong with the protocol, each as one change of its text."""

from typing import Final

from tests.simulation.mutants.clauses import CLAUSES
from tests.simulation.mutants.operation import OPERATION
from tests.simulation.mutants.outside import OUTSIDE
from tests.simulation.mutants.protocol import PROTOCOL

MUTANTS: Final = (*PROTOCOL, *OPERATION, *OUTSIDE, *CLAUSES)
