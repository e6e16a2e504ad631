"""The governor of the level of strain, and the rests of workers."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

GOVERNED: Final = (
    Mutant(
        "a few late starts raise the level",
        modules.GOVERNOR,
        "late = seen.starts.late >= LATE_AT_LEAST and",
        "late = seen.starts.late >= 1 and",
    ),
    Mutant(
        "one burst raises the level step after step",
        modules.GOVERNOR,
        "and not window_is_over(seen, now=now) and now - since >= WINDOW:",
        "and not window_is_over(seen, now=now):",
    ),
    Mutant(
        "the level falls at once",
        modules.GOVERNOR,
        "    if now - max(since, seen.minute_from) >= FALLS_AFTER and seen.minute.calm:\n",
        "    if seen.minute.calm:\n",
    ),
    Mutant(
        "the level falls after a minute with late starts",
        modules.GOVERNOR,
        "    if now - max(since, seen.minute_from) >= FALLS_AFTER and seen.minute.calm:\n",
        "    if now - max(since, seen.minute_from) >= FALLS_AFTER:\n",
    ),
    Mutant(
        "a minute counts only late starts",
        modules.STRAIN_ITEM,
        "ADD #late :late, #total :total, #minute_late :late, #minute_total :total",
        "ADD #late :late, #total :total, #minute_late :late, #minute_total :late",
    ),
    Mutant(
        "the level falls to nothing in one step",
        modules.GOVERNOR,
        "        return max(level - 1, NO_STRAIN)\n",
        "        return NO_STRAIN\n",
    ),
    Mutant(
        "without starts, the level stays",
        modules.WAKE_FUNCTION,
        "            telemetry.governed(governor.settle())\n",
        "            telemetry.governed(governor.level())\n",
    ),
    Mutant(
        "strain slows no lane",
        modules.STRAIN,
        "2 ** max(level - first + 1, 0)",
        "1",
    ),
    Mutant(
        "a higher level slows no more",
        modules.STRAIN,
        "2 ** max(level - first + 1, 0)",
        "min(2 ** max(level - first + 1, 0), 2)",
    ),
    Mutant(
        "level 1 slows the lane default",
        modules.STRAIN,
        "Lane.DEFAULT: 2",
        "Lane.DEFAULT: 1",
    ),
    Mutant(
        "a worker rests once for a part",
        modules.REST,
        "        level = strain()\n    return",
        "        break\n    return",
    ),
)
