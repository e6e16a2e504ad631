"""The flight recorder: what the history says, how long it is, and what it costs."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

_ENTRIES: Final = "tidemill.dynamodb.history_entries"
_HISTORY: Final = "tidemill.domain.history"


RECORDED: Final = (
    Mutant("a claim is not recorded", modules.WRITES, "claim", "entries=[entry] if blind else []", ""),
    Mutant("a settle forgets what came before", modules.OUTCOMES, "history_after", "*job.history", ""),
    Mutant("a release forgets what came before", modules.WRITES, "release", "*job.history", ""),
    Mutant(
        "a claim that is taken back is not recorded",
        modules.WRITES,
        "unclaim",
        "entries=[Transition(at=now, state=State.RETRYING, cause=Why.UNANSWERED)]",
        "",
    ),
    Mutant("a lost run is not recorded", modules.OPERATORS, "nudge", "entries=[entry]", ""),
    Mutant(
        "a wake is not recorded",
        modules.OPERATORS,
        "wake",
        "entries=[Transition(at=now, state=State.QUEUED, cause=Why.DUE)]",
        "",
    ),
    Mutant("a turn is not recorded", modules.GROUP_ITEMS, "become_head", "entries=job.history[-1:]", ""),
    Mutant("a redrive is not recorded", modules.OPERATORS, "redrive", "entries=entries", ""),
    Mutant(
        "the history has no end",
        _ENTRIES,
        "kept",
        "last = tuple(entries[-MOST_KEPT:])\n"
        "while len(last) > least and size_bytes({'history': history(last)}) > room_bytes:\n"
        "    last = last[1:]",
        "last = tuple(entries)\n"
        "while False and len(last) > least and (size_bytes({'history': history(last)}) > room_bytes):\n"
        "    last = last[1:]",
    ),
    Mutant("the history is cut short", _HISTORY, "", "LEAST_KEPT: Final = 4", "LEAST_KEPT: Final = 3"),
    Mutant("the runs before a lost one have its number", _HISTORY, "with_attempts", "number -= 1", ""),
    Mutant("a claim that is taken back counts", _HISTORY, "with_attempts", "number += 1", ""),
    Mutant(
        "a payload may take the room of the history",
        "tidemill.dynamodb.payloads",
        "",
        "FIRST_RUN_BYTES: Final = 340",
        "FIRST_RUN_BYTES: Final = 0",
    ),
    Mutant(
        "success keeps the traceback", modules.OUTCOMES, "errors_after", "written.state is State.SUCCEEDED", "False"
    ),
    Mutant(
        "each error keeps its traceback",
        modules.OUTCOMES,
        "errors_after",
        "(replace(error, traceback='') for error in earlier)",
        "earlier",
    ),
)
