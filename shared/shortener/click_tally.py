"""Adds up the clicks of a link, and bounds the number of names that are counted separately. Pure functions."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Final

from shortener.user_agent import OTHER
from shortener.visitor import Visitor

#: Number of names of one trait that a shard counts separately; later names count as `OTHER`. A visitor can invent names
#: in a user agent, and DynamoDB refuses updates of an item at 400 KB. With this bound, all shards of a link and a day
#: stay below 1 MB, which is one page of a Query.
NAMES_KEPT: Final = 128
#: The same bound for the total, where the rarest names count as `OTHER`, and the number of latest days that the total
#: counts separately: more than a year. The whole item stays well below 400 KB.
TOTAL_NAMES_KEPT: Final = 1024
TOTAL_DAYS_KEPT: Final = 400

CLICKS: Final = "clicks"
BOTS: Final = "bots"
#: Prefix of the counters of clicks by their day.
DAY: Final = "day"


class Trait(StrEnum):
    """The properties by which clicks are counted. The values are fields of `Visitor` and prefixes of counters."""

    COUNTRY = "country"
    BROWSER = "browser"
    SYSTEM = "system"
    DEVICE = "device"


#: Traits whose names a visitor can invent.
_OPEN: Final = (Trait.BROWSER, Trait.SYSTEM, Trait.DEVICE)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counted clicks. Every click, also of a bot, is once in `clicks`, once in each trait, and once in its day."""

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
    """Add up shards, each given as its counters by name."""
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
    """The counters of a total, with few enough names and days for one item. Every click stays counted in `clicks`."""
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
