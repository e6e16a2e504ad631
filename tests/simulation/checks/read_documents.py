"""Checks that the present code reads each document as it was written, and shows it to operators as it is.

What is expected comes from the raw items alone. Documents of the next version of the code are left out.
"""

from collections.abc import Sequence
from typing import Any, Final

from tests.simulation.checks.shown_jobs import expected_view, time_text
from tests.simulation.checks.stories import tells_its_story
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, map_of, maps_of, number_of, require, text_of
from tests.simulation.world.code_versions import MARK
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill.application.job_view import operator_view
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.dynamodb.document import SCHEMA_VERSION, decode, encode

#: The keys of indexes, and the schema of the code that runs now, which may be the next version.
_NOT_OF_THE_JOB: Final = frozenset(("listing", "attention", "attention_at", "schema"))
#: Attributes that may be there with the value that a missing one stands for.
_EMPTY: Final[Sequence[Item]] = ({"N": "0"}, {"L": []}, {"BOOL": False})
_SHOWN: Final = "operators read a job as it is"


class ReadDocumentChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        watch_items(world, self._changed)

    def _changed(self, key: str, record: Record) -> None:
        item = record.after
        if not item or "state" not in item or MARK in item or number_of(item, "schema") != SCHEMA_VERSION:
            return
        try:
            job = decode(dict(item))
        except MalformedDocumentError as error:
            require(False, "every document can be read", str(error), key)
            return
        self._reads_what_was_written(key, item, job)
        self._shows_operators_all(key, item, job)
        tells_its_story(key, item, job)

    def _reads_what_was_written(self, key: str, item: Item, job: Job) -> None:
        again = encode(job)
        lost = {
            name: value
            for name, value in item.items()
            if again.get(name) != value and name not in _NOT_OF_THE_JOB and value not in _EMPTY
        }
        require(not lost, "a document is read as it was written", f"{lost}", key)
        more = again.keys() - item.keys()
        require(not more, "a document is read as it was written", f"{more}", key)

    def _shows_operators_all(self, key: str, item: Item, job: Job) -> None:
        shown = operator_view(job, payload=None)
        expected = expected_view(item) | {
            "payload": None,
            "tenant": key.rpartition("#")[0],
            "generation": number_of(item, "generation"),
            "payload_at": text_of(item, "payload_at") or None,
            "trace": text_of(item, "trace"),
            "cancelled_by": text_of(map_of(item, "cancel"), "by") or None,
            "undo_requested_by": text_of(map_of(item, "undone"), "by") or None,
            "undo_reason": text_of(map_of(item, "undone"), "reason") or None,
            "cancel_reason": text_of(map_of(item, "cancel"), "reason") or None,
            "redrives": [
                {"at": _time(one, "at"), **{name: text_of(one, name) or None for name in ("by", "death", "reason")}}
                for one in maps_of(item, "redrives")
            ],
        }
        history = shown.pop("history")
        self._shows_errors(key, item, shown.pop("errors"), history)
        self._shows_history(key, item, history)
        _require_equal(shown, expected, "fields", key)

    def _shows_errors(self, key: str, item: Item, shown: list[dict[str, Any]], history: list[dict[str, Any]]) -> None:
        """The errors of the document, and after them one for each run that is lost, as of when it began."""
        kept = [
            {
                "attempt": number_of(error, "attempt"),
                "at": _time(error, "at"),
                "class": text_of(error, "error_class"),
                "message": text_of(error, "message"),
                "retryable": error["retryable"]["BOOL"],
                "next_due": _time(error, "next_due"),
                "traceback": text_of(error, "traceback") or None,
            }
            for error in maps_of(item, "errors")
        ]
        _require_equal(shown[: len(kept)], kept, "errors", key)
        running = text_of(item, "state") == "running"
        last = number_of(item, "attempt") - running
        first = max(1, last - (number_of(item, "open_runs") - running) + 1)
        began = {entry["attempt"]: entry["at"] for entry in history if entry["cause"] == "claimed"}
        otherwise = _time(item, "claimed_at") or _time(item, "created_at")
        lost = [(one["attempt"], one["class"], one["at"], one["next_due"]) for one in shown[len(kept) :]]
        expected = [(number, "Crashed", began.get(number, otherwise), None) for number in range(first, last + 1)]
        _require_equal(lost, expected, "lost runs", key)

    def _shows_history(self, key: str, item: Item, shown: list[dict[str, Any]]) -> None:
        """`HistoryChecks` compares the numbers of runs."""
        expected = [(_time(item, "created_at"), "accepted", None), *_entries(item)]
        if "cancel_requested_at" in item:
            expected.append((_time(item, "cancel_requested_at"), "running", None))
        if "undone" in item:
            expected.append((_time(map_of(item, "undone"), "at"), "succeeded", None))
        burst = map_of(item, "burst")
        moved_at = _time(burst, "first_moved_at")
        if moved_at and not any(cause == "moved" and at == moved_at for at, cause in _causes(item)):
            expected.append((moved_at, "moved", None))
        if "first_replaced_at" in burst:
            expected.append((_time(burst, "first_replaced_at"), "payload replaced", None))
        entries = [(entry["at"], str(entry["what"]), entry["worker"]) for entry in shown]
        if entries != expected:
            _require_equal(sorted(entries, key=str), sorted(expected, key=str), "history", key)


def _require_equal(shown: object, expected: object, what: str, key: str) -> None:
    # The text takes longer than the comparison, so it is made for a violation only.
    if shown != expected:
        require(False, _SHOWN, f"{what} {shown}, not {expected}", key)


def _entries(item: Item) -> list[tuple[str | None, str, str | None]]:
    entries = [entry["S"].split(" ") for entry in item.get("history", {"L": []})["L"]]
    return [(time_text(int(at)), state, None if worker == "-" else worker) for at, state, _, worker, *_ in entries]


def _causes(item: Item) -> list[tuple[str, str]]:
    entries = [entry["S"].split(" ", 4) for entry in item.get("history", {"L": []})["L"]]
    return [(time_text(int(at)), cause) for at, _, _, _, *causes in entries for cause in causes]


def _time(item: Item, name: str) -> str | None:
    return time_text(number_of(item, name)) if name in item else None
