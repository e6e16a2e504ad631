"""Which runs crashed, from the changes of the documents alone, against the errors and the suspects of the engine."""

from collections import defaultdict
from typing import Any, Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import Item, holds_by_cause, number_of, require, state_of, text_of
from tests.simulation.world.world import World
from tidemill.domain.attempt.outcomes import ERRORS_KEPT
from tidemill.domain.job import CRASHED
from tidemill.domain.states import TERMINAL, State
from tidemill.dynamodb import document

#: After so many holds in a row because no worker could run it alone, a suspect job runs beside others.
_MOST_HOLDS_OF_A_SUSPECT: Final = 5

#: Error class and attempt.
_Entry = tuple[str, int]


class CrashChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By job, the attempts of its crashed runs since a run came back.
        self._unrecorded: dict[tuple[str, str], list[int]] = defaultdict(list)
        #: Tokens of the runs that must be alone in their process.
        self.suspects: set[str] = set()
        watch_jobs(world, changed=[self._changed])

    def _changed(self, key: str, before: Item, after: Item) -> None:
        crashed = self._unrecorded[key, after["created_at"]["N"]]
        self._errors_equal_the_crashes(key, before, after, crashed)
        claimed = (owner := text_of(after, "owner")) and owner != text_of(before, "owner")
        if claimed and crashed and holds_by_cause(before).get("suspect", 0) < _MOST_HOLDS_OF_A_SUSPECT:
            self.suspects.add(owner)

    def _errors_equal_the_crashes(self, key: str, before: Item, after: Item, crashed: list[int]) -> None:
        """`crashed` is up to date afterwards."""
        check = "reported errors equal the crashes that happened"
        owner, was, now = text_of(before, "owner"), _entries(before), _entries(after)
        ended = owner and owner != text_of(after, "owner") and text_of(after, "last_owner") == owner
        if owner and owner != text_of(after, "owner") and not ended:
            crashed.append(number_of(before, "attempt"))
        redriven = state_of(before) is State.DEAD and state_of(after) not in TERMINAL
        if redriven or (ended and not _given_back(before, after)):
            recorded = [(CRASHED, attempt) for attempt in crashed]
            # A run that ended may add its own error. The list alone does not tell: a full one may repeat itself.
            own = [error for error in now[-1:] if ended and error[0] != CRASHED]
            allowed = [[*was, *recorded, *more][-ERRORS_KEPT:] for more in ([], own)]
            require(now in allowed, check, f"{was} became {now}, not {recorded}", key)
            crashed.clear()
        else:
            require(now == was, check, f"{was} became {now} although no run came back", key)
        # Both versions of the code show the same, under any schema that the document is marked with.
        readable = dict(after) | {document.SCHEMA_ATTRIBUTE: {"N": "1"}}
        shown = [error.attempt for error in document.decode(readable).lost]
        require(shown == crashed, check, f"it shows {shown}, not {crashed}", key)


def _given_back(before: Item, after: Item) -> bool:
    """Whether the claim was undone, by a hold, a release or an unclaim. A snooze and a continuation count a hop."""
    fell = number_of(after, "attempt") - number_of(before, "attempt") == -1
    return fell and number_of(after, "hops") == number_of(before, "hops")


def _entries(item: Item) -> list[_Entry]:
    """The own error of a job that died as crashed too often records no crash: its last attempt never ran."""
    errors: list[Any] = item.get("errors", {"L": []})["L"]
    return [_entry(error["M"]) for error in errors]


def _entry(error: Item) -> _Entry:
    crash = text_of(error, "error_class") == CRASHED and error["retryable"]["BOOL"]
    return (CRASHED if crash else "reported", number_of(error, "attempt"))


__all__ = ["CrashChecks"]
