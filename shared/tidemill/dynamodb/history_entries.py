"""The flight recorder as attribute values: one short text for each transition, and how many of them are kept."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from tidemill.aws.attribute_values import text
from tidemill.aws.clients import Item
from tidemill.domain.history import LEAST_KEPT, LEAST_KEPT_AFTER_FAILURE, MOST_KEPT, Transition, Why
from tidemill.domain.states import State
from tidemill.domain.time_constants import EPOCH, MILLISECOND, epoch_milliseconds

#: A write is charged per unit of the whole item.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
WRITE_UNIT_BYTES: Final = 1024
#: The growth of a document by its next run: the entries of its claim and its settle, and its owner.
NEXT_RUN_BYTES: Final = 200
_NOTHING: Final = "-"
#: Both images of a stream record, and each later read of a job, have the same entries again.
_ENTRIES_KEPT: Final = 1024


def history(entries: Sequence[Transition]) -> Item:
    return {"L": [text(_text(entry)) for entry in entries]}


def transitions(value: Item) -> tuple[Transition, ...]:
    """Leaves out what it cannot read: the history must not make a document unreadable."""
    found = [_transition(entry["S"]) for entry in value["L"]]
    return tuple(entry for entry in found if entry)


def kept(entries: Sequence[Transition], rest: Item) -> tuple[Transition, ...]:
    """The last of these entries. `rest` is the document without them.

    The oldest are left out as soon as the history would take a write unit of its own, down to the least that is kept.
    """
    least = LEAST_KEPT_AFTER_FAILURE if {"errors", "redrives"} & rest.keys() else LEAST_KEPT
    room_bytes = -size_bytes(rest) % WRITE_UNIT_BYTES - NEXT_RUN_BYTES
    last = tuple(entries[-MOST_KEPT:])
    while len(last) > least and size_bytes({"history": history(last)}) > room_bytes:
        last = last[1:]
    return last


def size_bytes(item: Mapping[str, Any]) -> int:
    """The size by which DynamoDB charges: names and values.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, held),) = value.items()
    match kind:
        case "S":
            return len(held.encode())
        case "B":
            return len(held)
        case "N":
            return (len(held.strip("0")) + 1) // 2 + 1
        case "L":
            return 3 + sum(1 + _value_bytes(each) for each in held)
        case "M":
            return 3 + sum(1 + len(name.encode()) + _value_bytes(each) for name, each in held.items())
    return 1


def _text(entry: Transition) -> str:
    """`milliseconds state attempt worker cause`, the cause last because it may hold spaces."""
    attempt = _NOTHING if entry.attempt is None else str(entry.attempt)
    parts = [str(epoch_milliseconds(entry.at)), entry.state, attempt, entry.worker or _NOTHING]
    return " ".join(parts if entry.cause == _plain_cause(entry.state) else [*parts, entry.cause])


@lru_cache(maxsize=_ENTRIES_KEPT)
def _transition(entry: str) -> Transition | None:
    try:
        at, state, attempt, worker, *cause = entry.split(" ", 4)
        return Transition(
            at=EPOCH + int(at) * MILLISECOND,
            state=state,
            cause=cause[0] if cause else _plain_cause(state),
            attempt=None if attempt == _NOTHING else int(attempt),
            worker="" if worker == _NOTHING else worker,
        )
    except (ValueError, OverflowError):
        return None


def _plain_cause(state: str) -> str:
    """The cause that is left out: a job mostly runs because it was claimed, and has its other states by themselves."""
    return Why.CLAIMED if state == State.RUNNING else state
