"""Limits that several job types share, or that each lane has for itself."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

SHARED: Final = (
    Mutant(
        "each type has a shared limit for itself",
        modules.JOB_TYPES,
        "JobType.limit_line",
        "shared=self.shared_limit",
        "shared=self.shared_limit and self.name",
    ),
    Mutant(
        "all lanes have one limit",
        modules.JOB_TYPES,
        "JobType.limit_line",
        "lane if self.limit_per_lane else None",
        "None",
    ),
    Mutant(
        "each lane has a limit for itself",
        modules.JOB_TYPES,
        "JobType.limit_line",
        "lane if self.limit_per_lane else None",
        "lane",
    ),
)
