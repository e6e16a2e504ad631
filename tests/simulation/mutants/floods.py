"""Quotas, and the shedding of submissions."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

FLOODED: Final = (
    Mutant(
        "each environment has the whole quota",
        modules.QUOTAS,
        "if count.own >= quota.share and",
        "if count.own > quota.count and",
    ),
    Mutant(
        "a count that fails is forgotten",
        modules.QUOTAS,
        "            count.shared += count.own",
        "            count.shared += 0",
    ),
    Mutant(
        "a count that fails refuses the job",
        modules.QUOTAS,
        "            count.shared += count.own",
        "            raise",
    ),
    Mutant(
        "the quota of one tenant is that of all",
        modules.RUNTIME_CONFIGURATION,
        "own, default = self._quotas.get(tenant), self._quotas.get(DEFAULT_QUOTA)",
        "own, default = next(iter(self._quotas.values()), None), None",
    ),
    Mutant(
        "a job is stored before it is admitted",
        modules.SUBMIT,
        "            admitted = self._admit(job)\n",
        "            self.insert(job)\n            admitted = self._admit(job)\n",
    ),
    Mutant(
        "strain sheds every type",
        modules.STRAIN,
        "return importance is Importance.SHEDDABLE and level > NO_STRAIN",
        "return level > NO_STRAIN",
    ),
    Mutant(
        "the lowest level of strain sheds nothing",
        modules.STRAIN,
        "return importance is Importance.SHEDDABLE and level > NO_STRAIN",
        "return importance is Importance.SHEDDABLE and level > 1",
    ),
    Mutant(
        "strain defers every type",
        modules.STRAIN,
        "    deferred = importance is Importance.DEFERRABLE and level > NO_STRAIN\n",
        "    deferred = level > NO_STRAIN\n",
    ),
    Mutant(
        "strain defers nothing",
        modules.STRAIN,
        "    deferred = importance is Importance.DEFERRABLE and level > NO_STRAIN\n",
        "    deferred = importance is Importance.DEFERRABLE and level > 3\n",
    ),
    Mutant(
        "a deferrable type is always deferred",
        modules.STRAIN,
        "    deferred = importance is Importance.DEFERRABLE and level > NO_STRAIN\n",
        "    deferred = importance is Importance.DEFERRABLE\n",
    ),
    Mutant(
        "a deferred job shows a time and does not wait",
        modules.SHED_SUBMISSIONS,
        "due=run_at, run_at=run_at",
        "run_at=run_at",
    ),
)
