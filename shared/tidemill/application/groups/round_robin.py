"""The order in which one run works for jobs of many groups, so that none is always the one without time. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar
from zlib import crc32

Item = TypeVar("Item")


def in_turn(items: Iterable[Item], group_of: Callable[[Item], str | None], *, look: int) -> list[Item]:
    """Those without a group, the first of each group, the second of each, and so on. Each group keeps its order.

    The groups follow each other in an order that depends on `look`, a number of this run: others may keep so many
    groups busy that a run has time for some of them only.
    """
    counts: Counter[str] = Counter()

    def turn(item: Item) -> tuple[int, int]:
        # Nothing keeps a job without a group busy.
        if (group := group_of(item)) is None:
            return 0, 0
        counts[group] += 1
        return counts[group], crc32(f"{look} {group}".encode())

    # `sorted` asks for each key once, in the order of the items.
    return sorted(items, key=turn)
