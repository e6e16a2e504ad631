"""Applies the mutant that the environment names, before pytest imports a test: `-p` loads this module first."""

import os

from tests.simulation.mutants.apply import apply
from tests.simulation.mutants.generated.generate import mutant_named
from tests.simulation.mutants.generated.targeted_tests import MUTANT

apply(mutant_named(os.environ[MUTANT]))
