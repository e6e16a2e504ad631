"""What a link's clicks add up to, and how many names are kept apart. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Final

from shortener.user_agent import OTHER
from shortener.visitor import Visitor

#: Names of one trait that a shard keeps apart; those that come later count as `OTHER`. Anybody can make up names in a
#: user agent, and nothing could be counted any more in an item that had grown to 400 KB. With this bound all shards of
#: a link and a day are below 1 MB, which is one Query.
NAMES_KEPT: Final = 128
#: As many in the total, where the rarest count as `OTHER`, and the days that are kept apart there, the latest: more
#: than a year, and all of it well below 400 KB.
TOTAL_NAMES_KEPT: Final = 1024
TOTAL_DAYS_KEPT: Final = 400

CLICKS: Final = "clicks"
BOTS: Final = "bots"
#: Prefix of the counters of clicks by their day.
DAY: Final = "day"


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
    """What was counted. Every click, a bot's too, is in `clicks`, once in each trait, and in its day."""

    clicks: int = 0
    bots: int = 0
    names: Mapping[Trait, Counter[str]] = field(default_factory=lambda: {trait: Counter() for trait in Trait})
    #: By the day of the click in UTC, as `2045-03-04`.
    days: Counter[str] = field(default_factory=Counter)


def counters(visitor: Visitor, held: Tally, *, day: date) -> list[str]:
    """The counters that a click of that day raises by one, in a shard that holds `held`."""

    def name(trait: Trait) -> str:
        name: str = getattr(visitor, trait)
        crowded = trait in _OPEN and name not in held.names[trait] and len(held.names[trait]) >= NAMES_KEPT
        return OTHER if crowded else name

    return [
        CLICKS,
        *([BOTS] if visitor.bot else []),
        f"{DAY}:{day}",
        *(f"{trait}:{name(trait)}" for trait in Trait),
    ]


def summed(shards: Iterable[Mapping[str, int]]) -> Tally:
    """Shards are their counters by name."""
    totals: Counter[str] = Counter()
    for shard in shards:
        totals.update(shard)
    tally = Tally(clicks=totals[CLICKS], bots=totals[BOTS])
    for counter, count in totals.items():
        kind, _, name = counter.partition(":")
        if kind == DAY:
            tally.days[name] = count
        elif name:
            tally.names[Trait(kind)][name] = count
    return tally


def condensed(tally: Tally) -> dict[str, int]:
    """The counters of a total: at most so many names and days that they fit one item, and no click lost."""
    kept = {CLICKS: tally.clicks, BOTS: tally.bots}
    for trait, names in tally.names.items():
        if trait in _OPEN:
            names = _most_frequent(names)  # noqa: PLW2901
        kept |= {f"{trait}:{name}": count for name, count in names.items()}
    for day in sorted(tally.days)[-TOTAL_DAYS_KEPT:]:
        kept[f"{DAY}:{day}"] = tally.days[day]
    return kept


def _most_frequent(names: Counter[str]) -> Counter[str]:
    kept = Counter(dict(names.most_common(TOTAL_NAMES_KEPT)))
    if rest := names.total() - kept.total():
        kept[OTHER] += rest
    return kept
