"""The exception of a failed check, and helpers to read a document in the form of DynamoDB."""

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.simulation.world.task_scheduler import Scheduler
from tidemill.application.events.replay import REPLAY_TAG
from tidemill.domain.flows.flow_place import NODE_GROUP
from tidemill.domain.states import State

Item = Mapping[str, Any]

_STATES: Final = {state.value: state for state in State}


class Violation(AssertionError):  # noqa: N818 - a finding
    """A failed check."""

    def __init__(self, check: str, what: str, about: str) -> None:
        super().__init__(check, what, about)
        self.check = check
        self.what = what
        #: Key of the job; `*` for none in particular.
        self.about = about

    def __str__(self) -> str:
        return f"{self.check}: {self.what}"


def require(holds: bool, check: str, what: str, about: str) -> None:
    if not holds:
        raise Violation(check, what, about)


def require_in_task(scheduler: Scheduler, holds: bool, check: str, what: str, about: str) -> None:
    """Require from a task: the hub raises the violation, so that the code under test cannot catch it."""
    if not holds:
        scheduler.fail(Violation(check, what, about))


def state_of(item: Item | None) -> State | None:
    return _STATES[item["state"]["S"]] if item else None


def number_of(item: Item | None, name: str) -> int:
    """0 if the attribute is missing."""
    return int(item[name]["N"]) if item and name in item else 0


def text_of(item: Item | None, name: str) -> str:
    return str(item[name]["S"]) if item and name in item else ""


def map_of(item: Item, name: str) -> Item:
    """Empty if the attribute is missing."""
    return item[name]["M"] if name in item else {}


def holds_by_cause(item: Item) -> dict[str, int]:
    """How often each cause has held the job back, as its document says."""
    last = {text_of(item, "hold_cause"): number_of(item, "holds")} if "hold_cause" in item else {}
    return {cause: int(times["N"]) for cause, times in map_of(item, "other_holds").items()} | last


def group_of(item: Item) -> str | None:
    """None for a node of a flow without a group, whose attribute only makes the stream report its end."""
    group = text_of(item, "group")
    return group if group and group != NODE_GROUP else None


def mark_of(item: Item | None) -> str | None:
    """Return the mark of a node of a flow that has no job: "skipped" or "blocked"."""
    return text_of(map_of(item or {}, "flow"), "mark") or None


def maps_of(item: Item, name: str) -> list[Item]:
    """The elements of a list; none if the attribute is missing."""
    return [entry["M"] for entry in item.get(name, {"L": []})["L"]]


def waits_alone(item: Item | None) -> bool:
    """Whether the job is parked for a signal."""
    wait = map_of(item or {}, "wait")
    return text_of(item, "state") == State.PARKED and text_of(wait, "cause") in {"signal", "input"}


def unused_signals(item: Item) -> dict[str, Any]:
    """The signals that a run may take, by name."""
    return {
        text_of(one, "name"): json.loads(text_of(one, "data")) for one in maps_of(item, "signals") if "used" not in one
    }


def wait_began(before: Item, after: Item) -> bool:
    """Whether this end of a run began a wait. Another one may only say that the next wait is not in a row."""
    was, now = ({**map_of(item, "awaited"), "times": None} for item in (before, after))
    return was != now


def cap_in_words(wait: Item) -> str:
    """The cap that a job waits for, as operators read it. Empty for another wait."""
    key = text_of(wait, "key")
    if text_of(wait, "cause") != "limit" or not key.startswith("{"):
        return ""
    cap = json.loads(key)
    return f"cap of tenant {cap['tenant']} in lane {cap['lane']}"


def capped(item: Item) -> bool:
    """Whether the job waits for a cap."""
    return bool(cap_in_words(map_of(item, "wait")))


def tenant_of(key: str) -> str:
    return key.rpartition("#")[0]


def tags_of(item: Item) -> list[str]:
    return [tag["S"] for tag in item.get("tags", {"L": []})["L"]]


def replay_of(item: Item) -> str | None:
    """The tag of the replay that made it; None for any other job."""
    return next((tag for tag in tags_of(item) if tag.partition(":")[0] == REPLAY_TAG), None)


def errors_of(item: Item) -> list[dict[str, Any]]:
    """Without their tracebacks, of which only that of the last error is kept."""
    errors = item.get("errors", {"L": []})["L"]
    return [{name: value for name, value in error["M"].items() if name != "traceback"} for error in errors]


def joined(before: Item | None, after: Item | None) -> bool:
    """Whether a later submission of its burst wrote `after`."""
    last = text_of(map_of(before or {}, "burst"), "last")
    return bool(last) and text_of(map_of(after or {}, "burst"), "last") != last


def run_ended(before: Item, after: Item) -> bool:
    """Whether the owner of the job wrote `after` to end its run."""
    owner = text_of(before, "owner")
    return bool(owner) and "owner" not in after and text_of(after, "last_owner") == owner


def payload_edited(before: Item, after: Item) -> bool:
    """Whether a redrive has replaced the payload."""
    redriven = maps_of(after, "redrives")
    return (
        state_of(before) is State.DEAD
        and before.get("redrives") != after.get("redrives")
        and ("edited" in redriven[-1])
    )


def has_expired(item: Item, now_ms: int, *, late_ms: int = 0) -> bool:
    """With `late_ms`, by a clock that is ahead by so much."""
    return "expires_at" in item and number_of(item, "expires_at") * 1000 <= now_ms + late_ms
