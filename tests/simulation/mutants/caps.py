"""Caps on the runs of a tenant."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

CAPPED: Final = (
    Mutant(
        "a cap counts nothing",
        modules.GATES,
        "if slot is None and (cap :=",
        "if slot is not None and (cap :=",
    ),
    Mutant(
        "a job that waited for its cap passes it",
        modules.GATES,
        "if slot is None and (cap :=",
        "if slot is None and job.wait is None and (cap :=",
    ),
    Mutant(
        "the cap of one tenant is that of all",
        modules.RUNTIME_CONFIGURATION,
        "if (own := self._caps.get(tenant)) and",
        "if (own := next(iter(self._caps.values()), None)) and",
    ),
    Mutant(
        "a weight divides the cap",
        modules.CAPS,
        "int(cap * Decimal(str(weight)))",
        "int(cap / Decimal(str(weight)))",
    ),
    Mutant(
        "a weight counts for all tenants",
        modules.RUNTIME_CONFIGURATION,
        "weight = self._weights.get(tenant)",
        "weight = next(iter(self._weights.values()), None)",
    ),
    Mutant(
        "the lanes of a tenant share its cap",
        modules.WAITING_LINES,
        "json.dumps({_TENANT: tenant, _LANE: lane})",
        'json.dumps({_TENANT: tenant, _LANE: "default"})',
    ),
    Mutant(
        "all tenants share a cap",
        modules.WAITING_LINES,
        "json.dumps({_TENANT: tenant, _LANE: lane})",
        'json.dumps({_TENANT: "all", _LANE: lane})',
    ),
    Mutant(
        "without a cap, the largest counts",
        modules.RUNTIME_CONFIGURATION,
        "default[1] is None:\n            return None\n",
        "default[1] is None:\n            return LARGEST_CAP\n",
    ),
    Mutant(
        "a raised cap holds back those that wait",
        modules.RUNTIME_CONFIGURATION,
        "        if self.stale:\n            return declared\n",
        "        if declared:\n            return declared\n",
    ),
)
