"""Quotas, and the shedding of submissions."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

FLOODED: Final = (
    Mutant(
        "each environment has the whole quota",
        modules.QUOTAS,
        "QuotaCounter.count",
        "count.own >= quota.share",
        "count.own > quota.count",
    ),
    Mutant(
        "a count that fails is forgotten",
        modules.QUOTAS,
        "QuotaCounter._add",
        "count.shared += count.own",
        "count.shared += 0",
    ),
    Mutant(
        "a count that fails refuses the job", modules.QUOTAS, "QuotaCounter._add", "count.shared += count.own", "raise"
    ),
    Mutant(
        "the quota of one tenant is that of all",
        modules.RUNTIME_CONFIGURATION,
        "RuntimeConfiguration.quota_of",
        "self._quotas.get(tenant), self._quotas.get(DEFAULT_QUOTA)",
        "next(iter(self._quotas.values()), None), None",
    ),
    Mutant(
        "a job is stored before it is admitted",
        modules.SUBMIT,
        "Submit.pending",
        "admitted = self._admit(job)",
        "self.insert(job)\nadmitted = self._admit(job)",
    ),
    Mutant(
        "strain sheds every type",
        modules.STRAIN,
        "sheds",
        "importance is Importance.SHEDDABLE and level > NO_STRAIN",
        "level > NO_STRAIN",
    ),
    Mutant("the lowest level of strain sheds nothing", modules.STRAIN, "sheds", "NO_STRAIN", "1"),
    Mutant(
        "strain defers every type",
        modules.STRAIN,
        "deferral",
        "importance is Importance.DEFERRABLE and level > NO_STRAIN",
        "level > NO_STRAIN",
    ),
    Mutant("strain defers nothing", modules.STRAIN, "deferral", "NO_STRAIN", "3"),
    Mutant(
        "a deferrable type is always deferred",
        modules.STRAIN,
        "deferral",
        "importance is Importance.DEFERRABLE and level > NO_STRAIN",
        "importance is Importance.DEFERRABLE",
    ),
    Mutant(
        "a deferred job shows a time and does not wait",
        modules.SHED_SUBMISSIONS,
        "shed_or_defer.admit",
        "due=run_at",
        "",
    ),
)
