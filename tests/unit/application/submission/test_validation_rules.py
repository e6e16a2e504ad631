"""Which members of a submission exclude each other, and the ends of their ranges."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job_type
from tidemill.application.features.submit_features import RULES
from tidemill.application.submission.validation import (
    DEEPEST_NESTING,
    LONGEST_ID,
    LONGEST_KEY,
    LONGEST_NAME_BYTES,
    MOST_TAGS,
    faults,
    may_be_id,
    payload_faults,
    read_payload,
    require_short_paths,
)
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.time_constants import LONGEST_SPAN

HOUR = timedelta(hours=1)
DAILY = Unique(period=timedelta(days=1))
PLAIN = a_job_type()
UNIQUE_TYPE = replace(PLAIN, unique=timedelta(days=1))


def found(job_type: Any = PLAIN, **asked: Any) -> list[str]:
    return [fault.path for fault in faults(Submission(type="test.job", **asked), job_type, now=NOW, rules=RULES)]


@pytest.mark.parametrize(
    ("job_type", "asked", "paths"),
    [
        (UNIQUE_TYPE, {}, []),
        (UNIQUE_TYPE, {"key": "k"}, ["/idempotency_key"]),
        (UNIQUE_TYPE, {"unique": DAILY}, []),
        (PLAIN, {"supersedes": ""}, ["/supersedes"]),
        (PLAIN, {"supersedes": "x" * (LONGEST_KEY + 1)}, ["/supersedes"]),
        (PLAIN, {"supersedes": "x", "unique": DAILY}, ["/supersedes"]),
        (UNIQUE_TYPE, {"supersedes": "x"}, ["/supersedes"]),
        (PLAIN, {"supersedes": "x", "delay": SECOND}, ["/supersedes"]),
        (PLAIN, {"supersedes": "x", "delay": timedelta(0)}, []),
        (PLAIN, {"supersedes": "x", "run_at": NOW}, ["/supersedes"]),
        (PLAIN, {"supersedes": "x", "max_age": HOUR}, ["/supersedes"]),
        (PLAIN, {"supersedes": "x", "deadline": NOW + HOUR}, ["/supersedes"]),
        (PLAIN, {"supersedes": "x", "key": "k", "group": "g"}, []),
        (PLAIN, {"batch": ""}, ["/batch"]),
        (PLAIN, {"batch": "x" * (LONGEST_ID + 1)}, ["/batch"]),
        (PLAIN, {"batch": "x", "supersedes": "y"}, ["/batch"]),
        (PLAIN, {"batch": "x", "unique": DAILY}, ["/batch"]),
        (UNIQUE_TYPE, {"batch": "x"}, ["/batch"]),
        (PLAIN, {"batch": "x", "key": "k", "group": "g", "delay": SECOND, "max_age": HOUR}, []),
        (PLAIN, {"unique": DAILY, "key": "k"}, ["/unique"]),
        (PLAIN, {"unique": Unique(period=SECOND - MILLISECOND)}, ["/unique/period_seconds"]),
        (PLAIN, {"unique": Unique(period=LONGEST_SPAN + MILLISECOND)}, ["/unique/period_seconds"]),
        (PLAIN, {"unique": Unique(period=SECOND, key="ü" * 64)}, []),
        (PLAIN, {"unique": Unique(period=SECOND, key="ü" * 65)}, ["/unique/key"]),
        (PLAIN, {"run_at": NOW - timedelta(minutes=1) - MILLISECOND}, ["/run_at"]),
        (PLAIN, {"delay": timedelta(0), "run_at": NOW}, ["/run_at"]),
        (PLAIN, {"deadline": NOW, "delay": -SECOND}, ["/delay_seconds", "/deadline"]),
        (PLAIN, {"deadline": NOW + SECOND, "delay": LONGEST_SPAN + SECOND}, ["/delay_seconds"]),
        (PLAIN, {"run_at": NOW.replace(tzinfo=None), "max_age": -HOUR}, ["/run_at"]),
        (PLAIN, {"run_at": NOW.replace(tzinfo=None), "deadline": NOW.replace(tzinfo=None)}, ["/run_at", "/deadline"]),
        (PLAIN, {"deadline": NOW, "run_at": NOW - SECOND}, ["/deadline"]),
        (PLAIN, {"tags": ["a", "b", "c", "d", "e", "e"]}, ["/tags", "/tags"]),
    ],
)
def test_the_members_that_exclude_each_other_are_refused(
    job_type: Any, asked: dict[str, Any], paths: list[str]
) -> None:
    assert found(job_type, **asked) == paths


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key", "k"),
        ("unique", DAILY),
        ("group", "g"),
        ("batch", "b"),
        ("supersedes", "s"),
        ("delay", timedelta(0)),
        ("run_at", NOW),
        ("deadline", NOW + HOUR),
    ],
)
def test_a_debounced_job_has_no_other_place_or_time(name: str, value: Any) -> None:
    path = {"key": "/idempotency_key", "delay": "/delay_seconds"}.get(name, f"/{name}")
    assert found(debounce=SECOND, **{name: value}) == [path]
    assert found(**{name: value}) == []


@pytest.mark.parametrize(
    ("asked", "paths"),
    [
        ({"debounce_key": "k"}, ["/debounce_key"]),
        ({"debounce_max": SECOND}, ["/debounce_max_seconds"]),
        ({"replace": "payload"}, ["/replace"]),
        ({"debounce": -MILLISECOND}, ["/debounce_seconds"]),
        ({"debounce": LONGEST_SPAN + MILLISECOND}, ["/debounce_seconds"]),
        ({"debounce": -MILLISECOND, "debounce_max": timedelta(0)}, ["/debounce_seconds"]),
        ({"debounce": -SECOND, "debounce_max": -MILLISECOND}, ["/debounce_seconds", "/debounce_max_seconds"]),
        ({"debounce": HOUR, "debounce_max": HOUR - MILLISECOND}, ["/debounce_max_seconds"]),
        ({"debounce": HOUR, "debounce_max": LONGEST_SPAN + MILLISECOND}, ["/debounce_max_seconds"]),
        ({"debounce": HOUR, "debounce_key": ""}, ["/debounce_key"]),
        ({"debounce": HOUR, "debounce_key": "x" * (LONGEST_NAME_BYTES + 1)}, ["/debounce_key"]),
        ({"debounce": HOUR, "debounce_key": "k", "replace": "tags"}, ["/replace"]),
        ({"debounce": HOUR, "replace": "payload"}, ["/debounce_key"]),
        ({"debounce": HOUR, "max_age": HOUR, "tags": ["a"]}, []),
    ],
)
def test_the_members_of_a_debounced_job_have_their_ranges(asked: dict[str, Any], paths: list[str]) -> None:
    assert found(**asked) == paths


def test_a_job_of_a_unique_type_is_not_debounced() -> None:
    assert found(UNIQUE_TYPE, debounce=SECOND) == ["/unique"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"group": ""}, "must be text of 1 to 128 bytes in UTF-8"),
        ({"key": ""}, "must be 1 to 512 characters"),
        ({"delay": -SECOND}, "must be 0 to 366 days"),
        ({"max_age": timedelta(0)}, "must be above 0 and at most 366 days"),
        ({"unique": Unique(period=timedelta(0))}, "must be 1 s to 366 days"),
        ({"tags": list("abcdef")}, "must be at most 5"),
        ({"supersedes": ""}, "must be a key or an id of 1 to 512 characters, of a job that is not unique"),
    ],
)
def test_a_fault_names_the_range(asked: dict[str, Any], message: str) -> None:
    [fault] = faults(Submission(type="test.job", **asked), PLAIN, now=NOW, rules=RULES)
    assert message in str(fault)
    assert (MOST_TAGS, LONGEST_ID) == (5, 36)


@pytest.mark.parametrize(
    ("text", "may_be"),
    [("x" * LONGEST_ID, True), ("x" * (LONGEST_ID + 1), False), ("", False), ("a#b", False), ("ü", False)],
)
def test_an_id_is_short_ascii_and_names_no_other_tenant(text: str, may_be: bool) -> None:
    assert may_be_id(text) is may_be


def nested(levels: int, *, lists: bool) -> Any:
    value: Any = 1
    for _ in range(levels - 1):
        value = [value] if lists else {"a": value}
    return {"a": value, "b": 2}


@pytest.mark.parametrize("lists", [True, False])
def test_a_payload_may_be_so_deep_and_no_deeper(lists: bool) -> None:
    assert DEEPEST_NESTING == 100
    text, value = read_payload(nested(DEEPEST_NESTING, lists=lists))
    assert value == nested(DEEPEST_NESTING, lists=lists)
    assert " " not in text
    with pytest.raises(InvalidPayloadError, match="/data: nested deeper than 100 levels"):
        read_payload(nested(DEEPEST_NESTING + 1, lists=lists), under="/data")


@pytest.mark.parametrize("text", ["[{" * 60, '"[' * 200, "\\" * 3 + "[" * 200, '\\"[' * 200])
def test_brackets_in_texts_and_side_by_side_do_not_nest(text: str) -> None:
    payload = {text: [text, *[[]] * 200, {"a": {}}, nested(DEEPEST_NESTING - 2, lists=True), text]}
    assert read_payload(payload)[1] == payload
    with pytest.raises(InvalidPayloadError, match="nested deeper"):
        read_payload({text: [text, *[[]] * 200, payload]})


def test_a_payload_that_its_model_refuses_has_each_fault_as_text() -> None:
    def refuse(_payload: Any) -> Any:
        raise InvalidPayloadError([Fault("/a", "no"), Fault("/b", "bad")])

    assert payload_faults(a_job_type(parse=refuse), {}) == [str(Fault("/a", "no")), str(Fault("/b", "bad"))]
    assert payload_faults(PLAIN, {}) == []


@pytest.mark.parametrize(
    ("payload", "refused"),
    [
        ({"k" * 20_000: [""] * 80_000}, True),
        ({"k": {"k" * 20_000: [""] * 80_000}}, True),
        ({"k" * 100: [""] * 80_000}, False),
        ({"k" * 200_000: [""] * 40}, False),
        ({"rows": [{"id": 1, "count": 2}] * 14_000}, False),
    ],
)
def test_the_paths_to_the_values_of_a_payload_are_bounded_together(payload: dict[str, Any], *, refused: bool) -> None:
    """A model that refuses each value makes a fault with its whole path for each."""
    text, value = read_payload(payload)
    if not refused:
        require_short_paths(text, value)
        return
    with pytest.raises(InvalidPayloadError, match="use shorter names") as raised:
        require_short_paths(text, value, under="/data")
    assert [fault.path for fault in raised.value.faults] == ["/data"]


def test_a_payload_with_two_names_that_become_one_text_is_refused() -> None:
    assert read_payload({"a": {1: 2}})[1] == {"a": {"1": 2}}
    with pytest.raises(InvalidPayloadError, match="two names of an object are the same text"):
        read_payload({"a": [{1: "a", "1": "b"}]})
