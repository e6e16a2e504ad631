"""Pauses: which jobs they hold back, and how their settings are read."""

from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job
from tests.support.configurations import A_FLAG, configured, paused
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.limits.limits import Rate
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration, drain_of
from tidemill.domain.records import replace
from tidemill.domain.waiting.pauses import CATCH_UP_TAG, Drain, Scope, Target, drain_rate, value_of
from tidemill.domain.waiting.waiting import Cause, Line
from tidemill.names import SCHEDULE_TENANT, Lane

#: The job that makes up for the times of a paused schedule.
CATCHES_UP: dict[str, Any] = {"tenant": SCHEDULE_TENANT, "type": "a", "tags": (CATCH_UP_TAG,)}


@pytest.mark.parametrize(
    ("target", "covered", "other"),
    [
        ("lane=bulk", {"lane": Lane.BULK}, {"lane": Lane.DEFAULT}),
        ("type=mail.welcome", {"type": "mail.welcome"}, {"type": "mail"}),
        (f"tenant={TENANT}", {"tenant": TENANT}, {"tenant": f"{TENANT}2"}),
        (f"group={TENANT} a b", {"group": "a b"}, {"group": "a b", "tenant": "other"}),
        (f"group={TENANT} a b", {"group": "a b"}, {"group": "a"}),
        ("schedule=a", CATCHES_UP, CATCHES_UP | {"tags": ()}),
        ("schedule=a", CATCHES_UP, CATCHES_UP | {"tenant": TENANT}),
        ("schedule=a", CATCHES_UP, CATCHES_UP | {"type": "b"}),
    ],
)
def test_a_pause_holds_back_what_it_names(target: str, covered: dict[str, Any], other: dict[str, Any]) -> None:
    made = configured(paused(target))

    pause = made.pause_of(a_job(**covered), now=NOW)
    assert pause is not None
    assert (str(pause.target), pause.by, pause.reason, pause.since) == (target, "arn:ops", "why", NOW)
    assert made.pause_of(a_job(**other), now=NOW) is None


def test_a_pause_ends_at_its_time() -> None:
    made = configured(paused("type=test.job", until=NOW + SECOND))

    assert made.pause_of(a_job(), now=NOW)
    assert made.pause_of(a_job(), now=NOW + SECOND) is None
    assert made.pauses(NOW + SECOND) == []


def test_the_same_pause_has_a_job_each_time() -> None:
    made = configured(paused("type=test.job"), paused("lane=default"))

    pause = made.pause_of(a_job(), now=NOW)
    assert pause is not None
    assert pause.target.scope is Scope.LANE


def test_a_limit_key_is_paused_by_its_line() -> None:
    line = Line.for_limit('["test.job", "a"]')
    made = configured(paused(f"limit={line.key}"))

    assert made.pause_of(a_job(), now=NOW) is None
    assert made.pause_of_limit(line, now=NOW)
    assert made.pause_of_limit(Line.for_limit("other"), now=NOW) is None
    assert not Target(scope=Scope.LIMIT, name="test.job").covers(a_job())


def test_each_pause_has_a_line_of_its_own() -> None:
    made = configured(paused("type=a"), paused("type=b"))
    lines = [pause.target.line for pause in made.pauses(NOW)]

    assert lines == [Line(Cause.PAUSE, "type=a"), Line(Cause.PAUSE, "type=b")]
    assert [made.pause_of_line(line, now=NOW) for line in lines] == made.pauses(NOW)
    assert made.pause_of_line(Line(Cause.LIMIT, "type=a"), now=NOW) is None
    assert len(Target.parse("type=" + "x" * 300).line.key) == 64


def test_the_value_of_a_pause_has_its_options() -> None:
    plain, both = configured(paused("type=a"), paused("type=b", value=value_of(reject_new=True, per_second=3))).pauses(
        NOW
    )

    assert (plain.reject_new, plain.rate) == (False, Rate(count=10, period=SECOND))
    assert (both.reject_new, both.rate) == (True, Rate(count=3, period=SECOND))
    assert value_of(reject_new=False, per_second=None) == {}


@pytest.mark.parametrize(
    ("target", "stops"),
    [
        ("schedule=a", True),
        ("schedule=b", False),
        ("type=a", True),
        ("type=b", False),
        ("lane=bulk", True),
        ("lane=default", False),
        (f"tenant={SCHEDULE_TENANT}", True),
        ("tenant=a", False),
        (f"group={SCHEDULE_TENANT} a", False),
        ("limit=a", False),
    ],
)
def test_a_pause_stops_the_schedule_of_a_type_if_it_holds_back_each_of_its_jobs(target: str, *, stops: bool) -> None:
    named = Target.parse(target)

    assert named.stops_schedule("a", Lane.BULK) is stops
    assert named.stops_schedules is (named.scope.value in {"schedule", "type", "lane"} or target == "tenant=schedule")


@pytest.mark.parametrize("per_second", [1, 100])
def test_a_line_may_empty_as_slowly_and_as_fast_as_this(per_second: int) -> None:
    assert drain_rate(per_second) == Rate(count=per_second, period=SECOND)


def test_a_pause_of_another_type_stops_no_schedule() -> None:
    made = configured(paused("type=b"), paused("tenant=a"))
    later = NOW + 60 * SECOND

    assert made.pause_of_schedule("a", Lane.BULK, scheduled=later) is None
    assert made.pause_of_schedule("b", Lane.BULK, scheduled=later) == made.pauses(NOW)[0]


def test_the_line_of_a_pause_empties_at_its_rate_after_its_end() -> None:
    setting = paused("type=a", value=value_of(reject_new=False, per_second=3))

    drain = drain_of(setting, ends_at=NOW)

    assert drain == Drain(line=Line.for_pause("type=a"), rate=Rate(count=3, period=SECOND), ends_at=NOW)
    assert drain_of(replace(setting, value={"rate": "fast"}), ends_at=NOW) is None
    assert drain_of(A_FLAG, ends_at=NOW) is None


@pytest.mark.parametrize(("scheduled", "held"), [(9, False), (10, True), (59, True), (60, False)])
def test_the_times_of_a_schedule_are_held_from_when_each_function_knows_of_the_pause(
    scheduled: int, *, held: bool
) -> None:
    (pause,) = configured(paused("type=a", until=NOW + 60 * SECOND)).pauses(NOW)

    assert pause.holds(NOW + scheduled * SECOND) is held
    assert replace(pause, until=None).holds(NOW + scheduled * SECOND) is (scheduled >= 10)


@pytest.mark.parametrize(
    ("target", "value", "complaint"),
    [
        ("region=eu", {}, "names nothing to pause: use lane=…, type=…"),
        ("type=", {}, "names nothing to pause"),
        ("type", {}, "names nothing to pause"),
        ("lane=slow", {}, "no lane is called 'slow': use critical, default, bulk"),
        ("group=orders", {}, "has no tenant"),
        ("group=orders ", {}, "has no tenant"),
        ("group= orders", {}, "has no tenant"),
        ("type=a", [], "is an object"),
        ("type=a", {"reject_new": 1}, "no option reject_new=1"),
        ("type=a", {"speed": 1}, "no option speed=1"),
        ("type=a", {"rate": 0}, "not a whole number from 1 to 100"),
        ("type=a", {"rate": 101}, "not a whole number from 1 to 100"),
        ("type=a", {"rate": True}, "not a whole number from 1 to 100"),
        ("type=a", {"rate": "5"}, "not a whole number from 1 to 100"),
    ],
)
def test_a_wrong_pause_is_refused_and_one_that_is_stored_is_skipped(target: str, value: Any, complaint: str) -> None:
    with pytest.raises(InvalidSettingError, match=complaint):
        configured(paused(target, value=value))
    entry = {"value": value, "at": NOW.isoformat(), "by": "a", "reason": ""}
    stored = RuntimeConfiguration(document={"settings": {f"pauses.{target}": entry}})
    assert stored.pauses(NOW) == []
    assert f"pauses.{target}" in stored.settings
