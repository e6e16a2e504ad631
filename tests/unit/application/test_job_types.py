"""`JobType`, `JobTypes` and `Run`: what each has by default, and what it answers."""

import dataclasses
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from tests.support.builders import NOW, SECOND, a_job_type, a_run, types_of
from tidemill.application.attempt.run import Run
from tidemill.application.event_types import EventType
from tidemill.application.job_types import JobTypes as Types
from tidemill.application.job_types import measured
from tidemill.domain.admission.strain import Importance
from tidemill.domain.errors import JobFileError, UnknownJobTypeError, UnloadedJobTypeError
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.type_overrides import NO_OVERRIDES, TypeOverrides
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.names import CANARY_TYPE

LIMIT = Limit(concurrency=3)


def test_a_type_that_says_nothing_is_of_normal_importance_and_has_no_further_rule() -> None:
    plain = a_job_type()
    assert plain.importance is Importance.NORMAL
    assert plain.catch_up
    assert not any([plain.blocks, plain.limit_spans_tenants, plain.limit_per_lane, plain.grouped])
    for absent in ("timeout", "max_age", "retention", "limit", "shared_limit", "unique", "schedule", "batch", "schema"):
        assert getattr(plain, absent) is None, absent


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"limit": None}, None),
        ({}, '["test.job", "", "acme"]'),
        ({"limit_key": lambda payload: payload["site"]}, '["test.job", "a.example", "acme"]'),
        ({"limit_key": lambda _payload: 7}, '["test.job", 7, "acme"]'),
        ({"limit_key": lambda _payload: None}, '["test.job", null, "acme"]'),
        ({"shared_limit": "crm"}, '["limit:crm", "", "acme"]'),
        ({"limit_per_lane": True}, '["test.job", "", {"lane": "bulk"}, "acme"]'),
        ({"limit_spans_tenants": True}, '["test.job", ""]'),
    ],
    ids=["no limit", "plain", "key", "number", "none", "shared", "per lane", "all tenants"],
)
def test_the_line_of_a_limit_says_whose_it_is(options: dict[str, Any], key: str | None) -> None:
    job_type = replace(a_job_type(), **{"limit": LIMIT} | options)
    line = job_type.limit_line({"site": "a.example"}, tenant="acme", lane="bulk")
    assert line == (Line.for_limit(key) if key else None)


def test_a_limit_key_that_is_not_json_is_refused_with_its_type() -> None:
    key: Any = UUID(int=7)
    job_type = replace(a_job_type(), limit=LIMIT, limit_key=lambda _payload: key)

    with pytest.raises(TypeError, match=r"^the key of 'test\.job' returned a UUID; return text, a number or None$"):
        job_type.limit_line({}, tenant="acme", lane="bulk")


@pytest.mark.parametrize(
    ("overrides", "timeout", "attempts", "limit"),
    [
        (NO_OVERRIDES, 60 * SECOND, 4, LIMIT),
        (TypeOverrides(timeout=5 * SECOND), 5 * SECOND, 4, LIMIT),
        (TypeOverrides(max_attempts=2), 60 * SECOND, 2, LIMIT),
        (TypeOverrides(concurrency=9), 60 * SECOND, 4, Limit(concurrency=9)),
    ],
    ids=["none", "timeout", "attempts", "limit"],
)
def test_an_override_changes_its_own_value_alone(
    overrides: TypeOverrides, timeout: timedelta, attempts: int, limit: Limit
) -> None:
    declared = replace(a_job_type(max_attempts=4), timeout=60 * SECOND, limit=LIMIT)

    found = declared.overridden(overrides)

    assert (found.timeout, found.retry.max_attempts, found.limit) == (timeout, attempts, limit)
    assert replace(found, timeout=declared.timeout, retry=declared.retry, limit=LIMIT) == declared
    # Each run asks, and hardly any type has an override.
    assert (found is declared) is (overrides is NO_OVERRIDES)


@pytest.mark.parametrize(
    ("names", "most", "found"),
    [
        (["b", CANARY_TYPE, "a", "c", "a"], 2, ["a", "b"]),
        (["b", CANARY_TYPE], 2, ["b"]),
        ([], 2, []),
    ],
)
def test_the_first_types_by_name_have_metrics_of_their_own_without_the_canary(
    names: list[str], most: int, found: list[str]
) -> None:
    assert measured(names, most) == found


A, B, SHARED = a_job_type(name="a"), a_job_type(name="b"), replace(a_job_type(name="c"), shared_limit="crm")
NAMED, UNNAMED = JobFileError("x.py:1: broken", ["x", "y"]), JobFileError("z.py:1: broken")


def test_a_type_is_found_by_its_name() -> None:
    assert types_of(B, A).get("a") is A
    assert types_of(B, A).names() == ("a", "b")


@pytest.mark.parametrize(
    ("faults", "name", "fault"),
    [
        ((), "x", None),
        ((NAMED,), "x", NAMED),
        ((NAMED,), "y", NAMED),
        ((NAMED,), "v", None),
        ((NAMED, UNNAMED), "v", UNNAMED),
        ((NAMED, UNNAMED), "x", NAMED),
    ],
)
def test_a_type_that_a_broken_file_may_declare_is_not_loaded_and_another_is_unknown(
    faults: tuple[JobFileError, ...], name: str, fault: JobFileError | None
) -> None:
    types = Types({"a": A}, faults)

    with pytest.raises(UnknownJobTypeError) as raised:
        types.get(name)

    assert type(raised.value) is (UnloadedJobTypeError if fault else UnknownJobTypeError)
    assert raised.value.known == ("a",)
    assert types.lacks(name) is (fault is not None)
    if fault:
        assert str(fault) in str(raised.value)


def test_a_sound_file_makes_up_for_a_broken_one() -> None:
    types = Types({"a": A}, (UNNAMED,))
    assert types.get("a") is A
    assert not types.lacks("a")


def test_a_shared_limit_finds_one_of_its_types() -> None:
    types = types_of(A, SHARED, B)
    assert types.with_shared_limit("crm") is SHARED
    assert types.with_shared_limit("other") is None


def test_the_events_and_the_sources_of_the_code_are_known_by_name() -> None:
    event: Any = object()
    source: Any = object()
    events: dict[tuple[str, int], EventType] = {("paid", 1): event}
    types = Types({}, events=events, sources={"orders": source})
    assert (types.events, types.sources) == (events, {"orders": source})
    assert (types_of().events, types_of().sources) == ({}, {})


def test_a_run_shows_no_data_of_other_jobs_in_its_text_and_equals_one_with_other_tools() -> None:
    def unlike(*_: Any) -> Any:
        return None

    tools: dict[str, Any] = dict.fromkeys(("save", "read_flags", "observe", "read_strain", "take_step", "log"), unlike)
    other = dataclasses.replace(a_run(), parents={"quote": "secret"}, **tools)

    assert other == a_run()
    assert "secret" not in repr(other)
    assert not [name for name in (*tools, "parents") if f"{name}=" in repr(other)]


def test_a_run_is_at_its_first_hop_and_outside_of_a_worker_it_has_no_strain() -> None:
    run = a_run()
    assert (run.hops, run.strained, run.flags, run.signals) == (0, 0, {}, {})
    run.observed(1.0)
    run.checkpoint([1])
    assert run.step("charge", lambda number: number + 1, 1) == 2


@pytest.mark.parametrize(
    ("waited_for", "signals", "timed_out"),
    [
        (None, {}, False),
        (None, {"paid": 1}, False),
        ("paid", {}, True),
        ("paid", {"paid": None}, False),
        ("paid", {"sent": 1}, True),
    ],
)
def test_a_run_has_timed_out_if_the_signal_that_it_waited_for_has_not_come(
    waited_for: str | None, signals: dict[str, Any], timed_out: bool
) -> None:
    run = dataclasses.replace(a_run(), waited_for=waited_for, signals=signals)
    assert run.timed_out is timed_out
    assert run.signal("paid") == signals.get("paid")


def test_a_run_passes_on_what_its_handler_says() -> None:
    said: list[tuple[Any, ...]] = []

    def note(name: str, *arguments: Any) -> None:
        said.append((name, *arguments))

    def take(name: str, call: "partial[Any]") -> Any:
        said.append(("step", name))
        return call()

    run: Run = dataclasses.replace(
        a_run(),
        observe=partial(note, "observed"),
        save=partial(note, "saved"),
        take_step=take,
        read_flags=lambda: {"a": NOW},
        read_strain=lambda: 2,
    )
    run.observed(0.5)
    run.observed(throttled=True)
    run.checkpoint([1], done=1, total=3)
    assert run.step("charge", max, 1, 2) == 2

    assert said == [
        ("observed", 0.5, False),
        ("observed", None, True),
        ("saved", [1], 1, 3),
        ("step", "charge"),
    ]
    assert (run.flags, run.strained) == ({"a": NOW}, 2)
