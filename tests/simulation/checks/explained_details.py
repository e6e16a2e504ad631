"""The words that an explanation of `tidemill explain` must have, from the raw document and the reason it gives."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.simulation.checks.violation import Item, map_of, maps_of, number_of, state_of, text_of
from tidemill.application.explain.explanation import Reason
from tidemill.domain.states import State

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: By the attribute that a live job has, the words that it must have besides, and no other job.
FURTHER: Final[Mapping[str, str]] = {
    "cancel_requested_at": "A cancel was requested",
    "nudges": "Reconcile has sent it again",
    "deadline": "If no run begins by",
    "useful_until": "comes too late: it expires then",
}
_ENDED: Final = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED, State.EXPIRED})
_ENDINGS: Final[Mapping[State | None, str]] = {
    State.SUCCEEDED: "succeeded",
    State.CANCELLED: "was cancelled",
    State.EXPIRED: "expired",
}


def details(item: Item, reason: Reason) -> Iterator[str]:
    """Words about the state, each time that concerns it, and how often reconcile sent the job again."""
    yield from _about_end(item, reason) if state_of(item) in _ENDED else _about_run(item, reason)
    if state_of(item) is State.SCHEDULED and reason is not Reason.WAKE_LATE:
        yield "Wake puts it on its lane"
    if "nudges" in item and state_of(item) not in _ENDED:
        yield f"Reconcile has sent it again {_times(number_of(item, 'nudges'))} without a claim"


def _about_end(item: Item, reason: Reason) -> Iterator[str]:
    if reason is Reason.DEAD:
        yield f"It died {_time(item, 'finished_at')}"
        if "blocks" in item and "group" in item:
            yield f"It blocks its group {text_of(item, 'group')}"
    else:
        yield f"It {_ENDINGS[state_of(item)]} {_time(item, 'finished_at')}"
        if "undo" in item:
            undone = text_of(map_of(item, "undone"), "job_id")
            yield f"It was undone by job {undone}, submitted" if undone else "undoes it."
        if state_of(item) is State.EXPIRED:
            yield f"it was of use until {_time(item, 'useful_until')}"
            yield "its next run had not begun"


def _about_run(item: Item, reason: Reason) -> Iterator[str]:
    attempt = number_of(item, "attempt")
    match reason:
        case Reason.RUNNING:
            yield f"A worker has run it since {_time(item, 'claimed_at')}"
            yield f"as attempt {attempt}. Its lease ends"
        case Reason.LEASE_OVER:
            yield f"The lease of attempt {attempt} ended"
        case Reason.BACKOFF:
            last = maps_of(item, "errors")[-1]
            yield f"Attempt {number_of(last, 'attempt')} failed with {text_of(last, 'error_class')}."
        case Reason.HELD:
            yield f", {_times(number_of(item, 'holds'))} so far: "
        case Reason.RELEASED:
            yield "other transactions conflicted" if "releases" in item else "did not answer its worker"
        case Reason.BLOCKED:
            yield f"blocks the group {text_of(item, 'group')}"
        case Reason.PAUSED:
            yield "is paused by eve since"
        case _:
            pass
    # The `due` of a paused job is only the time at which reconcile repairs it.
    if "due" in item and reason not in {Reason.PAUSED, Reason.UNLOADED}:
        yield _time(item, "due")


def _time(item: Item, name: str) -> str:
    return f"{_EPOCH + timedelta(milliseconds=number_of(item, name)):%Y-%m-%d %H:%M:%S}Z"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
