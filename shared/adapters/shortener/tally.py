"""What a link's clicks add up to, and how many names are kept apart. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from shared.adapters.shortener.agents import OTHER
from shared.adapters.shortener.visitor import Visitor

#: Names of one trait that a shard keeps apart; those that come later count as `OTHER`. Anybody can make up names in a
#: user agent, and nothing could be counted any more in an item that had grown to 400 KB. With this bound all shards of
#: a link are below 1 MB, which is one Query.
NAMES_KEPT: Final = 128

CLICKS: Final = "clicks"
BOTS: Final = "bots"


class Trait(StrEnum):
    """What clicks are counted by. The values are fields of `Visitor` and prefixes of counters."""

    COUNTRY = "country"
    BROWSER = "browser"
    SYSTEM = "system"
    DEVICE = "device"


#: Traits whose names a visitor can make up.
_OPEN: Final = (Trait.BROWSER, Trait.SYSTEM, Trait.DEVICE)


@dataclass(frozen=True, slots=True)
class Tally:
    """What was counted. Every click, a bot's too, is in `clicks` and once in each trait."""

    clicks: int = 0
    bots: int = 0
    names: Mapping[Trait, Counter[str]] = field(default_factory=lambda: {trait: Counter() for trait in Trait})


def counters(visitor: Visitor, held: Tally) -> list[str]:
    """The counters that a click raises by one, in a shard that holds `held`."""

    def name(trait: Trait) -> str:
        name: str = getattr(visitor, trait)
        crowded = trait in _OPEN and name not in held.names[trait] and len(held.names[trait]) >= NAMES_KEPT
        return OTHER if crowded else name

    return [CLICKS, *([BOTS] if visitor.bot else []), *(f"{trait}:{name(trait)}" for trait in Trait)]


def summed(shards: Iterable[Mapping[str, int]]) -> Tally:
    """Shards are their counters by name."""
    totals: Counter[str] = Counter()
    for shard in shards:
        totals.update(shard)
    tally = Tally(clicks=totals[CLICKS], bots=totals[BOTS])
    for counter, count in totals.items():
        trait, _, name = counter.partition(":")
        if name:
            tally.names[Trait(trait)][name] = count
    return tally
