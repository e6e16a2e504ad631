"""What a response shows of a job, compared with the items of the table alone: see docs/reference/http.md."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from tests.simulation.checks.violation import Item, group_of, map_of, maps_of, tags_of, text_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXTS: Final = ("type", "lane", "state", "death", "group", "parent", "batch", "undoes", "supersedes", "superseded_by")
#: With the number that a missing attribute stands for.
_NUMBERS: Final = {"attempt": 0, "hops": 0, "sequence": None}
_TIMES: Final = (
    "cancel_requested_at",
    "run_at",
    "deadline",
    "useful_until",
    "created_at",
    "due",
    "claimed_at",
    "finished_at",
)
#: Only a response about one job has these, and its errors.
_MAY_BE_LARGE: Final = frozenset(
    (
        *("result", "checkpoint", "hops", "parent", "redrives", "cancelled_by", "signals", "steps"),
        *("undo", "undone_at", "undoes", "supersedes", "superseded_by"),
    )
)
_MISSING: Final = object()
_JSON: Final = ("result", "checkpoint")


def shows_one_of(job: Mapping[str, Any], versions: Iterable[Item | None]) -> bool:
    """Whether a response, or an entry of a listing, shows one of these versions of the job."""
    return any(_shows(job, item) for item in versions if item)


def _shows(job: Mapping[str, Any], item: Item) -> bool:
    """An entry of a listing lacks the members that may be large."""
    expected = expected_view(item)
    if any(
        job.get(name, value if name in _MAY_BE_LARGE and "errors" not in job else _MISSING) != value
        for name, value in expected.items()
    ):
        return False
    return "errors" not in job or _ends_of_runs(job["errors"]) == [
        (int(error["M"]["attempt"]["N"]), error["M"]["error_class"]["S"], error["M"]["message"]["S"])
        for error in item.get("errors", {"L": []})["L"]
        if error["M"]["error_class"]["S"] != "Crashed"
    ]


def expected_view(item: Item) -> dict[str, Any]:
    """What an owner reads of this job, except its payload, errors and history."""

    def held(name: str, kind: str) -> Any:
        return item[name][kind] if name in item else None

    def number(name: str) -> int | None:
        return int(item[name]["N"]) if name in item else None

    def time(milliseconds: int | None) -> str | None:
        return None if milliseconds is None else time_text(milliseconds)

    expires_at = number("expires_at")
    return {
        "id": item["pk"]["S"].rpartition("#")[2],
        **{name: held(name, "S") for name in _TEXTS},
        "group": group_of(item),
        **{name: missing if name not in item else number(name) for name, missing in _NUMBERS.items()},
        **{name: time(number(name)) for name in _TIMES},
        **{name: json.loads(item[name]["S"]) if name in item else None for name in _JSON},
        "signals": [
            {"name": one["name"]["S"], "at": time(int(one["at"]["N"])), "data": json.loads(one["data"]["S"])}
            for one in maps_of(item, "signals")
        ],
        "debounce": _debounce(item["burst"]["M"], time) if "burst" in item else None,
        "steps": [
            {"name": one["name"]["S"], "at": time(int(one["at"]["N"])), "attempt": int(one["attempt"]["N"])}
            for one in maps_of(item, "steps")
        ],
        "tags": tags_of(item),
        "flow": text_of(map_of(item, "flow"), "id") or None,
        "node": text_of(map_of(item, "flow"), "node") or None,
        "undo": _undo(item["undo"]["M"]) if "undo" in item else None,
        "undone_at": time(int(item["undone"]["M"]["at"]["N"])) if "undone" in item else None,
        "undone_by": item["undone"]["M"]["job_id"]["S"] if "undone" in item else None,
        "cancelled_by": _cancelled_by(item),
        "expires_at": None if expires_at is None else time(expires_at * 1000),
        "progress": {
            "done": number("progress_done"),
            "total": number("progress_total"),
            "at": time(number("checkpoint_at")),
        },
        "wait": _wait(item["wait"]["M"], time) if "wait" in item else None,
        "redrives": [
            {
                "at": time(int(one["M"]["at"]["N"])),
                "by": "owner" if one["M"]["by"]["S"] == "owner" else "operator",
                "death": one["M"]["death"]["S"] if "death" in one["M"] else None,
            }
            for one in item.get("redrives", {"L": []})["L"]
        ],
    }


def _debounce(burst: Item, time: Any) -> dict[str, Any]:
    return {
        "key": burst["key"]["S"] if "key" in burst else None,
        **{name: int(burst[name]["N"]) if name in burst else 0 for name in ("moves", "replacements")},
        **{
            name: time(int(burst[name]["N"]) if name in burst else None)
            for name in ("until", "first_moved_at", "first_replaced_at")
        },
    }


def _undo(undo: Item) -> dict[str, Any]:
    return {
        "type": undo["type"]["S"],
        "lane": undo["lane"]["S"],
        "payload": json.loads(undo["payload"]["S"]),
        "tags": tags_of(undo),
    }


def _cancelled_by(item: Item) -> str | None:
    if "cancel" not in item:
        return None
    return "owner" if item["cancel"]["M"]["by"]["S"] == "owner" else "operator"


def _wait(wait: Item, time: Any) -> dict[str, Any]:
    return {"cause": wait["cause"]["S"], "key": wait["key"]["S"], "since": time(int(wait["since"]["N"]))}


def _ends_of_runs(errors: Iterable[Mapping[str, Any]]) -> list[tuple[int, str, str]]:
    """Without the runs that crashed, which `CrashChecks` counts."""
    return [(error["attempt"], error["class"], error["message"]) for error in errors if error["class"] != "Crashed"]


@lru_cache(maxsize=1024)
def time_text(milliseconds: int) -> str:
    """RFC 3339."""
    return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
