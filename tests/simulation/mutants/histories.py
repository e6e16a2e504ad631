"""The flight recorder: what the history says, how long it is, and what it costs."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

_ENTRIES: Final = "tidemill.dynamodb.history_entries"
_HISTORY: Final = "tidemill.domain.history"


RECORDED: Final = (
    Mutant(
        "a claim is not recorded",
        modules.WRITES,
        "        entries=[entry] if blind else [],\n",
        "",
    ),
    Mutant("a settle forgets what came before", modules.OUTCOMES, "return (*job.history, ended)", "return (ended,)"),
    Mutant("a release forgets what came before", modules.WRITES, "entries=[*job.history, entry]", "entries=[entry]"),
    Mutant(
        "a claim that is taken back is not recorded",
        modules.WRITES,
        "        entries=[Transition(at=now, state=State.RETRYING, cause=Why.UNANSWERED)],\n",
        "",
    ),
    Mutant(
        "a lost run is not recorded",
        modules.OPERATORS,
        "        removes=removes,\n        entries=[entry],\n",
        "        removes=removes,\n",
    ),
    Mutant(
        "a wake is not recorded",
        modules.OPERATORS,
        "        entries=[Transition(at=now, state=State.QUEUED, cause=Why.DUE)],\n",
        "",
    ),
    Mutant("a turn is not recorded", modules.GROUP_ITEMS, "        entries=job.history[-1:],\n", ""),
    Mutant(
        "a redrive is not recorded",
        modules.OPERATORS,
        "        entries=entries,\n        expressions",
        "        expressions",
    ),
    Mutant(
        "the history has no end",
        _ENTRIES,
        "last = tuple(entries[-MOST_KEPT:])\n    while",
        "last = tuple(entries)\n    while False and",
    ),
    Mutant("the history is cut short", _HISTORY, "LEAST_KEPT: Final = 4", "LEAST_KEPT: Final = 3"),
    Mutant("the runs before a lost one have its number", _HISTORY, "            number -= 1\n", ""),
    Mutant("a claim that is taken back counts", _HISTORY, "            number += 1\n", ""),
    Mutant(
        "a payload may take the room of the history",
        "tidemill.dynamodb.payloads",
        "_BYTES: Final = 340",
        "_BYTES: Final = 0",
    ),
    Mutant(
        "success keeps the traceback",
        modules.OUTCOMES,
        "succeeded = written.state is State.SUCCEEDED",
        "succeeded = False",
    ),
    Mutant(
        "each error keeps its traceback",
        modules.OUTCOMES,
        'return (*(replace(error, traceback="") for error in earlier), ',
        "return (*earlier, ",
    ),
)
