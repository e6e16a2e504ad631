"""The checks of a submission, the same over HTTP, in Python and for follow-up jobs. Each fault names its path."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, Final, TypeGuard

from tidemill.application.job_types import JobType
from tidemill.application.submission.read_back import require_equal
from tidemill.domain.error_text import text_of
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.names import Lane

#: JSON readers recurse on a stack of limited depth. This stays far below the limit of every reader.
DEEPEST_NESTING: Final = 100
#: The same of results, checkpoints, steps and signals. Python reads and writes some 900 levels, and fewer where more
#: calls are on the stack: what one function has written, each other one must be able to read.
DEEPEST_STORED: Final = 500
#: The longest paths of a payload together, in characters. pydantic makes a fault for each wrong value, with the whole
#: path to it: in 256 KiB of JSON, 80,000 wrong numbers in a list with a name of 20 KB had taken 1.5 GB.
_LONGEST_PATHS: Final = 16 * 1024 * 1024
SHORTEST_PERIOD: Final = timedelta(seconds=1)
#: In UTF-8, for a group name and for a unique key. With a tenant, and escaped as JSON, it fits into the 2,048 bytes of
#: a partition key.
LONGEST_NAME_BYTES: Final = 128
MOST_TAGS: Final = 5
#: Short, so that a document with five of them stays within one write unit. No character needs an escape in a URL.
TAG_PATTERN: Final = r"[a-z0-9][a-z0-9._:-]{0,31}"
#: In characters, for an idempotency key. Only a hash of it is stored.
LONGEST_KEY: Final = 512
#: Every id is a UUID. DynamoDB rejects keys that are far longer.
LONGEST_ID: Final = 36

#: A caller's clock may be slow, and the request takes some time.
_PAST_ALLOWED: Final = timedelta(minutes=1)
_TAG: Final = re.compile(TAG_PATTERN, re.ASCII)
_NESTS: Final = frozenset({dict, list})
#: In JSON text: each text, and all between two brackets.
_BUT_BRACKETS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[^"\[\]{}]++')
#: What `is_name` asks for.
NAME_RULE: Final = f"must be text of 1 to {LONGEST_NAME_BYTES} bytes in UTF-8"


#: What a program may give for the members of a submission, besides None, and the paths of the members over HTTP.
_TYPES: Final[Mapping[type, Mapping[str, str]]] = {
    str: {
        "type": "type",
        "group": "group",
        "key": "idempotency_key",
        "supersedes": "supersedes",
        "batch": "batch",
        "debounce_key": "debounce_key",
    },
    timedelta: {
        "delay": "delay_seconds",
        "max_age": "max_age_seconds",
        "debounce": "debounce_seconds",
        "debounce_max": "debounce_max_seconds",
    },
    datetime: {"run_at": "run_at", "deadline": "deadline"},
    Unique: {"unique": "unique"},
}
_TYPE_NAMES: Final[Mapping[type, str]] = {
    str: "text",
    timedelta: "a timedelta",
    datetime: "a datetime",
    Unique: "a Unique",
}


def may_be_id(text: object) -> TypeGuard[str]:
    """Whether a job may have this id.

    In a key, `#` separates tenant and id, so a text with it may lead to the job of another tenant.
    """
    return isinstance(text, str) and 0 < len(text) <= LONGEST_ID and text.isascii() and "#" not in text


def require_types(submission: Submission, *, under: str = "") -> None:
    """Python does not check them, and the checks of their values need them. Raises `InvalidPayloadError`."""
    if found := [Fault(under + fault.path, fault.message) for fault in type_faults(submission)]:
        raise InvalidPayloadError(found)


def require_key_type(key: object) -> None:
    """Check the key of a batch or a flow, from which the key of its job is made. Raises `InvalidPayloadError`."""
    if not isinstance(key, str | None):
        raise InvalidPayloadError([Fault("/idempotency_key", "must be text")])


def type_faults(submission: Submission) -> list[Fault]:
    """The members that have a wrong type. The payload has a check of its own."""
    found = [
        Fault(f"/{path}", f"must be {_TYPE_NAMES[wanted]}")
        for wanted, members in _TYPES.items()
        for name, path in members.items()
        if not isinstance(value := getattr(submission, name), wanted) and (value is not None or name == "type")
    ]
    lane: Any = submission.lane
    if lane is not None and lane not in list(Lane):
        found.append(Fault("/lane", f"must be one of {', '.join(Lane)}"))
    tags: Any = submission.tags
    if not isinstance(tags, Collection) or not all(isinstance(tag, str) for tag in tags):
        found.append(Fault("/tags", "must be a list of texts"))
    if isinstance(submission.unique, Unique):
        period: Any = submission.unique.period
        key: Any = submission.unique.key
        if not isinstance(period, timedelta):
            found.append(Fault("/unique/period_seconds", "must be a timedelta"))
        if not isinstance(key, str | None):
            found.append(Fault("/unique/key", "must be text"))
    return found


def payload_faults(job_type: JobType, payload: Mapping[str, Any]) -> list[str]:
    """Why the model of the type refuses the payload, as it was decoded; empty if it does not."""
    try:
        job_type.parse(json.dumps(payload))
    except InvalidPayloadError as error:
        return list(map(str, error.faults))
    return []


def read_payload(payload: Mapping[str, Any], *, under: str = "/payload") -> tuple[str, dict[str, Any]]:
    """The payload as JSON text in ASCII, and decoded again, as its handler sees it. Raises `InvalidPayloadError`."""
    try:
        text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
        value = json.loads(text)
        if value != payload:
            # A name that is not text becomes text, which another name may be already.
            json.loads(text, object_pairs_hook=_of_distinct_names)
    except RecursionError:
        raise _too_deep(under) from None
    except (TypeError, ValueError) as error:
        # `1e999` is valid JSON. Python reads it as infinity, which JSON cannot write.
        raise InvalidPayloadError([Fault(under, f"must be JSON with finite numbers only: {text_of(error)}")]) from error
    if _nests_deeper(text, DEEPEST_NESTING):
        raise _too_deep(under)
    if not isinstance(value, dict):
        raise InvalidPayloadError([Fault(under, "must be a JSON object")])
    return text, value


def _of_distinct_names(members: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(members)
    if len(made) < len(members):
        raise ValueError("two names of an object are the same text")
    return made


def require_short_paths(text: str, value: Any, *, under: str = "/payload") -> None:
    """Before a model reads a payload: its faults hold the paths of all wrong values. Raises `InvalidPayloadError`."""
    # No path is longer than the text, and it has no more values than separators.
    most = len(text) * (1 + text.count(",") + text.count(":"))
    if most > _LONGEST_PATHS and _paths(value) > _LONGEST_PATHS:
        message = f"the paths to its values have more than {_LONGEST_PATHS} characters together; use shorter names"
        raise InvalidPayloadError([Fault(under, message)])


def stored_json(value: Any) -> str:
    """Return compact JSON text in ASCII, which reads back as the value.

    Raises `TypeError`, `ValueError` or `RecursionError` if it is not JSON.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    read = json.loads(text)
    if _nests_deeper(text, DEEPEST_STORED):
        raise ValueError(f"it is nested deeper than {DEEPEST_STORED} levels")
    require_equal(value, read)
    return text


def faults(submission: Submission, job_type: JobType, *, now: datetime, rules: Iterable["Rule"]) -> list[Fault]:
    """The faults of every member but the payload, which `read_payload` and the job type check."""
    checks = (check for rule in rules for check in rule(submission, job_type, now))
    return [Fault(path, message) for holds, path, message in checks if not holds]


#: Whether the check passes, the path of the fault otherwise, and its message.
Check = tuple[bool, str, str]
#: The checks of some members of a submission. Their values have their types.
Rule = Callable[[Submission, JobType, datetime], Sequence[Check]]


def lane_rule(submission: Submission, job_type: JobType, _now: datetime) -> list[Check]:
    lanes, lane = list(Lane), submission.lane
    return [
        (
            lane is None or lanes.index(lane) >= lanes.index(job_type.lane),
            "/lane",
            f"jobs of this type run on {job_type.lane}; choose that lane or a less urgent one",
        )
    ]


def key_rule(submission: Submission, _job_type: JobType, _now: datetime) -> list[Check]:
    key = submission.key
    return [(key is None or 0 < len(key) <= LONGEST_KEY, "/idempotency_key", f"must be 1 to {LONGEST_KEY} characters")]


def time_rule(submission: Submission, _job_type: JobType, now: datetime) -> list[Check]:
    delay, run_at, deadline = submission.delay, submission.run_at, submission.deadline
    forms = [
        (moment is None or _is_moment(moment), path, "must be a time with an offset from UTC")
        for path, moment in (("/run_at", run_at), ("/deadline", deadline))
    ]
    if not all(holds for holds, _, _ in forms):
        return forms
    # Python compares two times of one zone as its clocks show them, which is wrong around the end of daylight saving
    # time: https://docs.python.org/3/library/datetime.html#datetime.datetime.__lt__
    run_at, deadline = (moment.astimezone(UTC) if moment else None for moment in (run_at, deadline))
    days = LONGEST_SPAN.days
    delayed = delay is None or timedelta(0) <= delay <= LONGEST_SPAN
    begins = run_at or now + (delay if delay and delayed else timedelta(0))
    return [
        (delay is None or run_at is None, "/run_at", "give delay_seconds or run_at, not both"),
        (delayed, "/delay_seconds", f"must be 0 to {days} days"),
        (run_at is None or run_at >= now - _PAST_ALLOWED, "/run_at", "must not lie in the past"),
        (run_at is None or run_at <= now + LONGEST_SPAN, "/run_at", f"must be at most {days} days ahead"),
        (
            submission.max_age is None or timedelta(0) < submission.max_age <= LONGEST_SPAN,
            "/max_age_seconds",
            f"must be above 0 and at most {days} days",
        ),
        (deadline is None or deadline > max(begins, now), "/deadline", "must be after the job may begin"),
    ]


def tag_rule(submission: Submission, _job_type: JobType, _now: datetime) -> list[Check]:
    tags = submission.tags
    if isinstance(tags, str):
        return [(False, "/tags", "must be a list of texts")]
    rule = f"must match {TAG_PATTERN}"
    return [
        (len(tags) <= MOST_TAGS, "/tags", f"must be at most {MOST_TAGS}"),
        (len(set(tags)) == len(tags), "/tags", "must not repeat a tag"),
        *((_TAG.fullmatch(tag) is not None, f"/tags/{index}", rule) for index, tag in enumerate(tags)),
    ]


def unique_type_rule(submission: Submission, job_type: JobType, _now: datetime) -> list[Check]:
    return [
        (
            submission.key is None or job_type.unique is None,
            "/idempotency_key",
            "jobs of this type are unique by payload; leave the idempotency key out",
        )
    ]


def unique_rule(submission: Submission, _job_type: JobType, _now: datetime) -> list[Check]:
    unique, key = submission.unique, submission.key
    if unique is None:
        return []
    return [
        (key is None, "/unique", "give an idempotency key or unique, not both"),
        (
            SHORTEST_PERIOD <= unique.period <= LONGEST_SPAN,
            "/unique/period_seconds",
            f"must be {SHORTEST_PERIOD.seconds} s to {LONGEST_SPAN.days} days",
        ),
        (unique.key is None or is_name(unique.key), "/unique/key", NAME_RULE),
    ]


def _is_moment(moment: datetime) -> bool:
    """Near the ends of the calendar, a time with an offset may have no equivalent in UTC."""
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return False
    return moment.utcoffset() is not None


def is_name(text: str) -> bool:
    """Whether a group, or a key of `unique` or debounce, may have this name.

    False also for half a surrogate pair: it has no UTF-8 form, and the store refuses it.
    """
    try:
        return 0 < len(text.encode()) <= LONGEST_NAME_BYTES
    except UnicodeEncodeError:
        return False


def _too_deep(path: str) -> InvalidPayloadError:
    return InvalidPayloadError([Fault(path, f"nested deeper than {DEEPEST_NESTING} levels")])


def _nests_deeper(text: str, levels: int) -> bool:
    """Whether a JSON text does. A walk over the decoded value takes ten times as long."""
    # Most values have fewer objects and lists than levels are allowed.
    if text.count("{") + text.count("[") <= levels:
        return False
    return max(accumulate(1 if each in "[{" else -1 for each in _BUT_BRACKETS.sub("", text))) > levels


def _paths(value: Any) -> int:
    """The characters of the JSON pointers to all values, where an index counts as one."""
    total, level = 0, [(0, value)]
    while level:
        below: list[tuple[int, Any]] = []
        for path, outer in level:
            if isinstance(outer, dict):
                total += (path + 1) * len(outer) + sum(map(len, outer))
                below += [(path + len(name) + 1, held) for name, held in outer.items() if held and type(held) in _NESTS]
            else:
                total += (path + 2) * len(outer)
                below += [(path + 2, held) for held in outer if held and type(held) in _NESTS]
        level = below
    return total
