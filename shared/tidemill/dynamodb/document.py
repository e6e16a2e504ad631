"""Encodes a `Job` as a DynamoDB item and decodes it."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct

from tidemill.aws.attribute_values import milliseconds, number, seconds, text
from tidemill.aws.clients import Item
from tidemill.domain.corrections.undo import Correction, Undo, Undone
from tidemill.domain.debounce.debounce_record import DebounceWindow
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError
from tidemill.domain.flows.flow_place import NODE_GROUP, FlowPlace, FlowState, Mark
from tidemill.domain.job import AttemptError, DeathReason, Job, Redrive
from tidemill.domain.job_parts import (
    Cancel,
    CancelRequest,
    GroupPlace,
    Lease,
    Lifetime,
    Nudges,
    Progress,
    StoredPayload,
)
from tidemill.domain.states import State
from tidemill.domain.steps.steps import RecordedSteps, Step
from tidemill.domain.time_constants import EPOCH, MILLISECOND
from tidemill.domain.waiting.holds import Holds, known_cause
from tidemill.domain.waiting.signals import Awaited, JobSignals, Signal
from tidemill.domain.waiting.waiting import Cause, Wait
from tidemill.dynamodb import history_entries
from tidemill.names import (
    BLOCKS_ATTRIBUTE,
    DEBOUNCE_ATTRIBUTE,
    GROUP_ATTRIBUTE,
    JOB_KEY,
    LISTING_SORT_KEY,
    PAYLOAD_LOCATION_ATTRIBUTE,
    TTL_ATTRIBUTE,
    Lane,
)

#: The schema version. Increase it when an older version cannot read the new form.
SCHEMA_VERSION: Final = 3
SCHEMA_ATTRIBUTE: Final = "schema"
HISTORY_ATTRIBUTE: Final = "history"
SIGNALS_ATTRIBUTE: Final = "signals"
STEPS_ATTRIBUTE: Final = "steps"
#: The counts of holds.
HOLD_ATTRIBUTES: Final = ("holds", "hold_cause", "other_holds")
#: Only nodes of flows have it. A mapping has five filter patterns at most, so one pattern gets publish the ends of
#: nodes and of jobs of groups: a node without a group has `NODE_GROUP` as its group.
FLOW_ATTRIBUTE: Final = "flow"
LOOKS_ATTRIBUTE: Final = "looks"
ADDITIONS_ATTRIBUTE: Final = "additions"


def key(tenant: str, job_id: str) -> Item:
    """The primary key of a job. An id contains no `#`, so the last `#` separates tenant and id in every key."""
    return {JOB_KEY: text(f"{tenant}#{job_id}")}


def split_key(item: Item) -> tuple[str, str]:
    """The tenant and id in the key of an item or of an index entry."""
    tenant, _, job_id = item[JOB_KEY]["S"].rpartition("#")
    return tenant, job_id


class _Form(Struct, frozen=True):
    encode: Callable[[Any], Item]
    decode: Callable[[Item], Any]


def from_milliseconds(value: Item) -> datetime:
    return EPOCH + int(value["N"]) * MILLISECOND


def _list_of(form: "_Form") -> _Form:
    return _Form(
        lambda values: {"L": [form.encode(value) for value in values]},
        lambda value: tuple(form.decode(entry) for entry in value["L"]),
    )


def _record(record: type[Struct], fields: Mapping[str, _Form]) -> _Form:
    defaults = _defaults(record)
    return _Form(
        lambda value: {"M": _encode_fields(value, fields, defaults)},
        lambda value: record(**_decode_fields(value["M"], fields)),
    )


def _defaults(record: type[Struct]) -> Mapping[str, Any]:
    """By field. The fields that have one come last."""
    return dict(zip(reversed(record.__struct_fields__), reversed(record.__struct_defaults__), strict=False))


def _encode_fields(value: Any, fields: Mapping[str, _Form], defaults: Mapping[str, Any]) -> Item:
    """Omits fields equal to their default."""
    return {
        name: form.encode(held)
        for name, form in fields.items()
        if (held := getattr(value, name)) is not None and held != defaults.get(name)
    }


def _decode_fields(item: Item, fields: Mapping[str, _Form]) -> dict[str, Any]:
    return {name: form.decode(held) for name, held in item.items() if (form := fields.get(name))}


_TEXT: Final = _Form(text, lambda value: str(value["S"]))
_NUMBER: Final = _Form(number, lambda value: int(value["N"]))
_TIME: Final = _Form(milliseconds, from_milliseconds)
_TIME_TO_LIVE: Final = _Form(seconds, lambda value: EPOCH + timedelta(seconds=int(value["N"])))
_DURATION: Final = _Form(
    lambda value: number(math.ceil(value.total_seconds())), lambda value: timedelta(seconds=int(value["N"]))
)
_FLAG: Final = _Form(lambda value: {"BOOL": value}, lambda value: bool(value["BOOL"]))
_DEATH: Final = _Form(text, lambda value: DeathReason(value["S"]))

ATTEMPT_ERRORS: Final = _list_of(
    _record(
        AttemptError,
        {
            "attempt": _NUMBER,
            "at": _TIME,
            "error_class": _TEXT,
            "message": _TEXT,
            "retryable": _FLAG,
            "next_due": _TIME,
            "traceback": _TEXT,
        },
    )
)
OTHER_HOLDS: Final = _Form(
    lambda holds: {"M": {cause: number(times) for cause, times in holds}},
    lambda value: tuple((cause, int(times["N"])) for name, times in value["M"].items() if (cause := known_cause(name))),
)
WAIT: Final = _record(
    Wait, {"cause": _Form(text, lambda value: Cause(value["S"])), "key": _TEXT, "since": _TIME, "not_before": _TIME}
)
SIGNALS: Final = _list_of(_record(Signal, {"name": _TEXT, "at": _TIME, "data": _TEXT, "used": _FLAG}))
AWAITED: Final = _record(
    Awaited,
    {
        "cause": _Form(text, lambda value: Cause(value["S"])),
        "name": _TEXT,
        "since": _TIME,
        "until": _TIME,
        "times": _NUMBER,
    },
)
REDRIVES: Final = _list_of(
    _record(Redrive, {"token": _TEXT, "at": _TIME, "by": _TEXT, "death": _DEATH, "reason": _TEXT, "edited": _FLAG})
)
CANCEL: Final = _record(CancelRequest, {"by": _TEXT, "reason": _TEXT})
UNDO: Final = _record(
    Undo,
    {
        "type": _TEXT,
        "lane": _Form(text, lambda value: Lane(value["S"])),
        "payload": _TEXT,
        "tags": _list_of(_TEXT),
        "blocks": _FLAG,
        "retention": _DURATION,
        "max_age": _DURATION,
    },
)
UNDONE: Final = _record(Undone, {"job_id": _TEXT, "at": _TIME, "by": _TEXT, "reason": _TEXT})
DROPPED_STEPS: Final = _list_of(_TEXT)
STEPS: Final = _list_of(
    _record(Step, {"name": _TEXT, "at": _TIME, "attempt": _NUMBER, "result": _TEXT, "version": _TEXT})
)
BURST: Final = _record(
    DebounceWindow,
    {
        "name": _TEXT,
        "key": _TEXT,
        "until": _TIME,
        "sent_for": _TIME,
        "last": _TEXT,
        "joined_at": _TIME,
        "moves": _NUMBER,
        "first_moved_at": _TIME,
        "replacements": _NUMBER,
        "first_replaced_at": _TIME,
    },
)
FLOW_PLACE: Final = _record(
    FlowPlace, {"id": _TEXT, "node": _TEXT, "mark": _Form(text, lambda value: Mark(value["S"]))}
)

#: Each attribute of an item except the key, with the field that it holds: of the job, or of a part of the job, such as
#: `lease.owner`. A missing attribute means the default of the field.
_ATTRIBUTES: Final[Mapping[str, tuple[str, _Form]]] = {
    "type": ("type", _TEXT),
    "lane": ("lane", _Form(text, lambda value: Lane(value["S"]))),
    "payload": ("payload.text", _TEXT),
    PAYLOAD_LOCATION_ATTRIBUTE: ("payload.location", _TEXT),
    "body_hash": ("body_hash", _TEXT),
    "trace": ("trace", _TEXT),
    "state": ("state", _Form(text, lambda value: State(value["S"]))),
    "generation": ("generation", _NUMBER),
    "attempt": ("attempt", _NUMBER),
    "open_runs": ("lease.open_runs", _NUMBER),
    LISTING_SORT_KEY: ("created_at", _TIME),
    "due": ("due", _TIME),
    "run_at": ("run_at", _TIME),
    "deadline": ("lifetime.deadline", _TIME),
    "useful_until": ("lifetime.useful_until", _TIME),
    GROUP_ATTRIBUTE: ("group.key", _TEXT),
    "sequence": ("group.sequence", _NUMBER),
    BLOCKS_ATTRIBUTE: ("group.blocks", _FLAG),
    "hops": ("hops", _NUMBER),
    "tags": ("tags", _list_of(_TEXT)),
    "batch": ("batch", _TEXT),
    DEBOUNCE_ATTRIBUTE: ("burst", BURST),
    FLOW_ATTRIBUTE: ("flow", FLOW_PLACE),
    LOOKS_ATTRIBUTE: ("flow_state.looks", _NUMBER),
    ADDITIONS_ATTRIBUTE: ("flow_state.additions", _NUMBER),
    "parent": ("parent", _TEXT),
    "undoes": ("correction.undoes", _TEXT),
    "supersedes": ("correction.supersedes", _TEXT),
    "after_undo": ("correction.after_undo", _TEXT),
    "superseded_by": ("correction.superseded_by", _TEXT),
    "checkpoint": ("progress.checkpoint", _TEXT),
    "checkpoint_at": ("progress.checkpoint_at", _TIME),
    "progress_done": ("progress.done", _NUMBER),
    "progress_total": ("progress.total", _NUMBER),
    STEPS_ATTRIBUTE: ("steps.recorded", STEPS),
    "dropped_steps": ("steps.dropped", DROPPED_STEPS),
    "cancel_requested_at": ("cancel.requested_at", _TIME),
    "cancel": ("cancel.request", CANCEL),
    "holds": ("holds.count", _NUMBER),
    "hold_cause": ("holds.cause", _Form(text, lambda value: known_cause(value["S"]))),
    "other_holds": ("holds.others", OTHER_HOLDS),
    "wait": ("wait", WAIT),
    SIGNALS_ATTRIBUTE: ("signals.received", SIGNALS),
    "awaited": ("signals.awaited", AWAITED),
    "unique_until": ("lifetime.unique_until", _TIME),
    "retention": ("lifetime.retention", _DURATION),
    "ready_at": ("lease.ready_at", _TIME),
    "claimed_at": ("lease.claimed_at", _TIME),
    "owner": ("lease.owner", _TEXT),
    "last_owner": ("lease.last_owner", _TEXT),
    "result": ("result", _TEXT),
    "undo": ("correction.undo", UNDO),
    "undone": ("correction.undone", UNDONE),
    "death": ("death", _DEATH),
    "errors": ("errors", ATTEMPT_ERRORS),
    "redrives": ("redrives", REDRIVES),
    HISTORY_ATTRIBUTE: ("history", _Form(history_entries.history, history_entries.transitions)),
    "releases": ("lease.releases", _NUMBER),
    "nudged_at": ("nudges.last_at", _TIME),
    "nudges": ("nudges.count", _NUMBER),
    "finished_at": ("finished_at", _TIME),
    TTL_ATTRIBUTE: ("lifetime.expires_at", _TIME_TO_LIVE),
}
#: The job itself has an empty name.
_PARTS: Final[Mapping[str, type[Struct]]] = {
    "": Job,
    "payload": StoredPayload,
    "lifetime": Lifetime,
    "group": GroupPlace,
    "flow_state": FlowState,
    "correction": Correction,
    "lease": Lease,
    "nudges": Nudges,
    "progress": Progress,
    "steps": RecordedSteps,
    "cancel": Cancel,
    "holds": Holds,
    "signals": JobSignals,
}
_FORMS: Final = {name: form for name, (_, form) in _ATTRIBUTES.items()}
_READ: Final = {name: attrgetter(path) for name, (path, _) in _ATTRIBUTES.items()}
#: By the name of an attribute, the part that its field belongs to, empty for the job itself, and the field.
PLACES: Final = {name: (path.rpartition(".")[0], path.rpartition(".")[2]) for name, (path, _) in _ATTRIBUTES.items()}
_DEFAULTS_OF: Final = {part: _defaults(record) for part, record in _PARTS.items()}
#: None for a field without a default.
_DEFAULTS: Final[Mapping[str, Any]] = {name: _DEFAULTS_OF[part].get(field) for name, (part, field) in PLACES.items()}


#: What decoding a malformed item raises.
_UNREADABLE: Final = (KeyError, TypeError, ValueError, OverflowError)


def value_of(job: Job, attribute: str) -> Any:
    """What the item of the job holds in this attribute, before it is encoded."""
    return _READ[attribute](job)


def encode(job: Job) -> Item:
    """Omits fields equal to their default."""
    item = key(job.tenant, job.id) | {SCHEMA_ATTRIBUTE: number(SCHEMA_VERSION)}
    for name, form in _FORMS.items():
        value = _READ[name](job)
        if value is not None and value != _DEFAULTS[name]:
            item[name] = form.encode(value)
    if job.flow and job.group.key is None:
        item[GROUP_ATTRIBUTE] = text(NODE_GROUP)
    return item


def decode(item: Item) -> Job:
    """Raises `NewerSchemaError` for an item of a newer version, and `MalformedDocumentError` for a malformed one."""
    try:
        if (schema := int(item[SCHEMA_ATTRIBUTE]["N"])) > SCHEMA_VERSION:
            raise NewerSchemaError("document", schema, SCHEMA_VERSION)
        tenant, job_id = split_key(item)
        if FLOW_ATTRIBUTE in item and item.get(GROUP_ATTRIBUTE) == text(NODE_GROUP):
            item = {name: value for name, value in item.items() if name != GROUP_ATTRIBUTE}
        return _job(tenant, job_id, item)
    except _UNREADABLE as error:
        raise MalformedDocumentError(_what_is_unreadable(item) or f"not a job document: {error!r}") from error


def _job(tenant: str, job_id: str, item: Item) -> Job:
    of_job: dict[str, Any] = {"tenant": tenant, "id": job_id, "payload": StoredPayload()}
    of_parts: dict[str, dict[str, Any]] = {}
    for name, value in item.items():
        if form := _FORMS.get(name):
            part, field = PLACES[name]
            holder = of_parts.setdefault(part, {}) if part else of_job
            holder[field] = form.decode(value)
    for part, values in of_parts.items():
        of_job[part] = _PARTS[part](**values)
    return Job(**of_job)


def _what_is_unreadable(item: Item) -> str:
    """The first field that cannot be decoded, and why."""
    for name, form in _FORMS.items():
        try:
            _decode_fields(item, {name: form})
        except _UNREADABLE as error:
            return f"the field {name!r} of the job document cannot be read: {error}"
    return ""
