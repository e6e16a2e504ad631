"""Caps on the runs of a tenant."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

CAPPED: Final = (
    Mutant(
        "a cap counts nothing",
        modules.LIMIT_GATE,
        "LimitGate.enter",
        "slot is None, (cap := configuration.cap_of(run.job.tenant, now=now)) is not None",
        "slot is not None, (cap := configuration.cap_of(run.job.tenant, now=now)) is not None",
    ),
    Mutant(
        "a job that waited for its cap passes it",
        modules.LIMIT_GATE,
        "LimitGate.enter",
        "(cap := configuration.cap_of(run.job.tenant, now=now)) is not None",
        "run.job.wait is None, (cap := configuration.cap_of(run.job.tenant, now=now)) is not None",
    ),
    Mutant(
        "the cap of one tenant is that of all",
        modules.RUNTIME_CONFIGURATION,
        "RuntimeConfiguration.cap_of",
        "self._caps.get(tenant)",
        "next(iter(self._caps.values()), None)",
    ),
    Mutant(
        "a weight divides the cap", modules.CAPS, "weighted", "cap * Decimal(str(weight))", "cap / Decimal(str(weight))"
    ),
    Mutant(
        "a weight counts for all tenants",
        modules.RUNTIME_CONFIGURATION,
        "RuntimeConfiguration.cap_of",
        "self._weights.get(tenant)",
        "next(iter(self._weights.values()), None)",
    ),
    Mutant(
        "the lanes of a tenant share its cap", modules.WAITING_LINES, "Line.for_cap", "_LANE: lane", "_LANE: 'default'"
    ),
    Mutant("all tenants share a cap", modules.WAITING_LINES, "Line.for_cap", "_TENANT: tenant", "_TENANT: 'all'"),
    Mutant(
        "without a cap, the largest counts",
        modules.RUNTIME_CONFIGURATION,
        "RuntimeConfiguration.cap_of",
        "return None",
        "return LARGEST_CAP",
    ),
    Mutant(
        "a raised cap holds back those that wait",
        modules.RUNTIME_CONFIGURATION,
        "RuntimeConfiguration.limit_of",
        "self.stale",
        "declared",
    ),
)
