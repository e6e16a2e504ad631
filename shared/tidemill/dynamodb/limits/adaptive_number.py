"""The number of an adaptive concurrency in its limit item: how it bounds the slots, and how a run changes it. Pure.

It changes with the writes by which runs enter and leave, so it takes no write of its own.
"""

from typing import Final

from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, ConcurrencyChange, Trouble, changed
from tidemill.domain.limits.limit_state import LimitState
from tidemill.dynamodb.document import from_milliseconds
from tidemill.dynamodb.limits.limit_write import HELD, LimitWrite

ALLOWED: Final = "allowed"
FALLS: Final = "falls"
_FELL_AT: Final = "fell_at"
_WHY: Final = "fell_why"
#: The bounds without overrides, for wake, which knows no job types.
BOUNDS: Final = "adaptive"
_FLOOR: Final = "floor"
_CEILING: Final = "ceiling"
_TARGET: Final = "target"


def begin(write: LimitWrite, bounds: Adaptive) -> None:
    """The first run of a limit key finds no number."""
    adapted = bounds.begin()
    write.set(ALLOWED, _exact(adapted.allowed))
    write.set(FALLS, number(adapted.falls))
    # Another run was the first.
    write.conditions.append(f"attribute_not_exists({write.name(ALLOWED)})")


def bound(
    write: LimitWrite,
    bounds: Adaptive,
    state: LimitState,
    *,
    adds: int,
    gives: int,
    gone: int,
    change: ConcurrencyChange | None,
) -> None:
    """Let the slots grow to the number, and no further. A slot that one holder hands to the next adds none.

    `change` is that of the run that leaves with the same write.
    """
    if adds <= gives:
        if not state.blind and state.adapted is None:
            begin(write, bounds)
        elif state.blind:
            # The item has slots of a time when its concurrency was fixed, and no number yet.
            write.conditions.append(f"attribute_exists({write.name(ALLOWED)})")
        return
    size = f"size({write.name(HELD)})"
    if state.blind:
        write.value("floor", number(bounds.floor))
        write.value("ceiling", number(bounds.ceiling))
        allowed = write.name(ALLOWED)
        write.conditions += [
            # The item has slots of a time when its concurrency was fixed, and no number yet.
            f"attribute_exists({allowed})",
            # The runs that have entered are as many as the number allows. The bounds may differ from those that it was
            # written with.
            f"{size} < :ceiling",
            f"({size} < {allowed} OR {size} < :floor)",
        ]
        return
    if state.adapted is None:
        begin(write, bounds)
        slots = bounds.slots(None)
    else:
        # Another run has lowered the number since. Without a decrease it only rises.
        write.conditions.append(f"{write.name(FALLS)} = {write.value('seen_falls', number(state.adapted.falls))}")
        slots = bounds.slots(changed(state.adapted, change))
    write.value("most", number(slots - adds + gone))
    # Other runs have entered since. Those that leave with this write make room.
    write.conditions.append(f"{size} <= :most")


def change(write: LimitWrite, change: ConcurrencyChange | None) -> None:
    """Raise or lower the number with this write. The slot of the run stands in the same item, so the number does."""
    if change is None:
        return
    if change.lowered is None:
        name = write.name(ALLOWED)
        # The table adds, so of two concurrent runs both count.
        write.sets[name] = f"{name} + {write.value('step', _exact(change.step))}"
        return
    write.set(ALLOWED, _exact(change.lowered.allowed))
    write.set(FALLS, number(change.lowered.falls))
    if change.lowered.fell_at:
        write.set(_FELL_AT, milliseconds(change.lowered.fell_at))
    write.set(_WHY, text(change.lowered.why or ""))
    # Another run has lowered it since: one decrease answers the load that both have measured.
    fell = write.value("fell", number(change.sample.entered.falls))
    write.conditions.append(f"{write.name(FALLS)} = {fell}")


def adapted_of(item: Item) -> Adapted | None:
    if ALLOWED not in item:
        return None
    return Adapted(
        allowed=float(item[ALLOWED]["N"]),
        falls=int(item[FALLS]["N"]),
        fell_at=from_milliseconds(item[_FELL_AT]) if _FELL_AT in item else None,
        why=_trouble(item[_WHY]["S"]) if _WHY in item else None,
    )


def bounds_field(bounds: Adaptive | None) -> Item | None:
    if bounds is None:
        return None
    return {
        "M": {
            _FLOOR: number(bounds.floor),
            _CEILING: number(bounds.ceiling),
            _TARGET: _exact(bounds.target_seconds),
        }
    }


def bounds_of(item: Item) -> Adaptive | None:
    if BOUNDS not in item:
        return None
    stored = item[BOUNDS]["M"]
    return Adaptive(
        floor=int(stored[_FLOOR]["N"]),
        ceiling=int(stored[_CEILING]["N"]),
        target_seconds=float(stored[_TARGET]["N"]),
    )


def _trouble(stored: str) -> Trouble | None:
    """None for one that only a newer version knows. It is shown, and decides nothing."""
    return Trouble(stored) if stored in set(Trouble) else None


def _exact(value: float) -> Item:
    """To a millionth. DynamoDB takes decimal numbers, in text."""
    return {"N": f"{value:.6f}".rstrip("0").rstrip(".")}
