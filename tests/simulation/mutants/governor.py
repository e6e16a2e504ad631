"""The governor of the level of strain, and the rests of workers."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

GOVERNED: Final = (
    Mutant("a few late starts raise the level", modules.GOVERNOR, "next_level", "LATE_AT_LEAST", "1"),
    Mutant("one burst raises the level step after step", modules.GOVERNOR, "next_level", "now - since >= WINDOW", ""),
    Mutant(
        "the level falls at once",
        modules.GOVERNOR,
        "next_level",
        "now - max(since, seen.minute_from) >= FALLS_AFTER and seen.minute.calm",
        "seen.minute.calm",
    ),
    Mutant(
        "the level falls after a minute with late starts",
        modules.GOVERNOR,
        "next_level",
        "now - max(since, seen.minute_from) >= FALLS_AFTER and seen.minute.calm",
        "now - max(since, seen.minute_from) >= FALLS_AFTER",
    ),
    Mutant(
        "a minute counts only late starts",
        modules.STRAIN_ITEM,
        "_further",
        "'ADD #late :late, #total :total, #minute_late :late, #minute_total :total'",
        "'ADD #late :late, #total :total, #minute_late :late, #minute_total :late'",
    ),
    Mutant(
        "the level falls to nothing in one step",
        modules.GOVERNOR,
        "next_level",
        "max(level - 1, NO_STRAIN)",
        "NO_STRAIN",
    ),
    Mutant("without starts, the level stays", modules.WAKE_FUNCTION, "handle", "governor.settle", "governor.level"),
    Mutant("strain slows no lane", modules.STRAIN, "slowdown", "2 ** max(level - first + 1, 0)", "1"),
    Mutant(
        "a higher level slows no more",
        modules.STRAIN,
        "slowdown",
        "2 ** max(level - first + 1, 0)",
        "min(2 ** max(level - first + 1, 0), 2)",
    ),
    Mutant("level 1 slows the lane default", modules.STRAIN, "", "Lane.DEFAULT: 2", "Lane.DEFAULT: 1"),
    Mutant("a worker rests once for a part", modules.REST, "rest_after", "level = strain()", "break"),
)
