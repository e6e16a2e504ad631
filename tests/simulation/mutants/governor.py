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
        "and not window_is_over(seen, now=now) and now - seen.since >= WINDOW:",
        "and not window_is_over(seen, now=now):",
    ),
    Mutant(
        "the level falls at once",
        modules.GOVERNOR,
        "    if now - max(_known(seen.since, now), _known(seen.troubled_at, now)) >= FALLS_AFTER:\n",
        "    if seen.starts.calm:\n",
    ),
    Mutant(
        "the level falls to nothing in one step",
        modules.GOVERNOR,
        "        return max(seen.level - 1, NO_STRAIN)\n",
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
