"""The runtime configuration: settings by name, what a version knows of them, and what it keeps of others."""

import json
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.configurations import A_FLAG, capped, configured, overridden, paused, strained
from tidemill.domain.admission.quotas import Quota
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.operations.runtime_configuration import LARGEST_DOCUMENT, NOTHING_SET, Change, RuntimeConfiguration
from tidemill.domain.operations.type_overrides import TypeOverrides
from tidemill.domain.records import replace
from tidemill.domain.waiting.pauses import ACTS_WITHIN, LATEST_CALL
from tidemill.names import Lane


def test_a_setting_is_read_as_it_was_set() -> None:
    ending = replace(A_FLAG, name="flags.size", value={"n": [1, None]}, until=NOW + SECOND)

    assert configured(A_FLAG, ending).settings == {A_FLAG.name: A_FLAG, ending.name: ending}
    assert configured(A_FLAG, replace(A_FLAG, value="red")).flags(NOW) == {"colour": "red"}


def test_a_handler_that_changes_a_flag_changes_it_for_no_other() -> None:
    made = configured(replace(A_FLAG, value={"of": ["blue"]}))

    made.flags(NOW)["colour"]["of"].append("red")

    assert made.flags(NOW) == {"colour": {"of": ["blue"]}}


def test_other_settings_are_not_flags() -> None:
    assert configured(A_FLAG, paused("type=a")).flags(NOW) == {"colour": "blue"}


def test_a_setting_of_each_kind_counts() -> None:
    quota = replace(A_FLAG, name="quotas.a", value={"count": 100, "period_seconds": 60})
    settings = (quota, capped("caps.default", 5), capped("weights.a", 2), overridden("mail.max_attempts", 3))
    made = configured(*settings, paused("type=mail"), strained(2))

    assert made.quota_of("a", now=NOW) == Quota(count=100, period=timedelta(minutes=1))
    assert (made.cap_of("a", now=NOW), made.cap_of("b", now=NOW)) == (10, 5)
    assert made.overrides_of("mail", now=NOW) == TypeOverrides(max_attempts=3)
    assert [str(pause.target) for pause in made.pauses(NOW)] == ["type=mail"]
    assert made.strain_level(NOW) == 2


def test_a_flag_is_absent_from_its_end_on() -> None:
    made = configured(A_FLAG, replace(A_FLAG, name="flags.size", value=3, until=NOW + SECOND))

    assert made.flags(NOW) == {"colour": "blue", "size": 3}
    assert made.flags(NOW + SECOND) == {"colour": "blue"}


def test_the_next_change_drops_the_settings_that_have_ended() -> None:
    made = configured(replace(A_FLAG, until=NOW + SECOND))
    other = replace(A_FLAG, name="flags.other", at=NOW + SECOND)

    assert configured(other, **made.document).settings == {"flags.other": other}
    with pytest.raises(InvalidSettingError, match="no setting"):
        made.without_setting(A_FLAG.name, now=NOW + SECOND)


def test_members_and_settings_of_a_newer_version_are_kept() -> None:
    newer: dict[str, Any] = {"later": {"n": 1}, "settings": {"quotas.t": {"share": 3}, "flags.odd": "text"}}
    made = RuntimeConfiguration(document=newer)

    assert made.settings == {}
    assert configured(A_FLAG, **newer).document == {
        "later": {"n": 1},
        "settings": {**newer["settings"], A_FLAG.name: configured(A_FLAG).document["settings"][A_FLAG.name]},
    }
    assert made.without_setting("quotas.t", now=NOW) == {**newer, "settings": {"flags.odd": "text"}}


@pytest.mark.parametrize(
    "entry",
    [
        {"at": "2030-01-01T00:00:00+00:00", "by": "a", "reason": ""},
        {"value": 1, "at": "2030-01-01T00:00:00", "by": "a", "reason": ""},
        {"value": 1, "at": "soon", "by": "a", "reason": ""},
        {"value": 1, "at": 7, "by": "a", "reason": ""},
        [1],
    ],
)
def test_an_entry_that_cannot_be_read_hides_no_other(entry: Any) -> None:
    made = configured(A_FLAG)
    document = {"settings": {**made.document["settings"], "flags.odd": entry}}

    assert RuntimeConfiguration(document=document).settings == {A_FLAG.name: A_FLAG}


def test_settings_of_an_unknown_form_are_skipped() -> None:
    assert RuntimeConfiguration(document={"settings": []}).settings == {}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "colour"}, "begins with flags., pauses., types., limits., breakers., quotas., caps. or weights."),
        ({"name": "flags."}, "1 to 100 of"),
        ({"name": "flags.-x"}, "1 to 100 of"),
        ({"name": "flags.a b"}, "1 to 100 of"),
        ({"name": "flags." + "x" * 101}, "1 to 100 of"),
        ({"until": NOW}, "has passed already"),
        ({"value": float("nan")}, "is not JSON"),
        ({"value": "x" * LARGEST_DOCUMENT}, f"{LARGEST_DOCUMENT} is the limit"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_fault(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidSettingError, match=complaint):
        NOTHING_SET.with_setting(replace(A_FLAG, **changes))


def test_the_document_may_be_as_large_as_its_limit() -> None:
    room = LARGEST_DOCUMENT - len(json.dumps(NOTHING_SET.with_setting(replace(A_FLAG, value=""))))

    assert len(json.dumps(NOTHING_SET.with_setting(replace(A_FLAG, value="x" * room)))) == LARGEST_DOCUMENT
    with pytest.raises(InvalidSettingError, match=f"would have {LARGEST_DOCUMENT + 1} bytes"):
        NOTHING_SET.with_setting(replace(A_FLAG, value="x" * (room + 1)))


def test_removing_what_is_not_set_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"no setting 'flags\.colour' is in force"):
        NOTHING_SET.without_setting(A_FLAG.name, now=NOW)
    assert configured(A_FLAG).without_setting(A_FLAG.name, now=NOW) == {"settings": {}}


def _target_at(made: RuntimeConfiguration, seconds: float) -> str | None:
    """Return the target of the pause that stops the schedule of the type "t" at this time after `NOW`."""
    pause = made.pause_of_schedule("t", Lane.BULK, scheduled=NOW + seconds * SECOND)
    return str(pause.target) if pause else None


def test_the_times_of_a_pause_begin_and_end_when_each_function_knows_of_it() -> None:
    acts = ACTS_WITHIN // SECOND
    made = configured(paused("lane=bulk"))
    made = RuntimeConfiguration(document=made.without_setting("pauses.lane=bulk", now=NOW + 60 * SECOND))

    assert not made.pauses(NOW + 61 * SECOND)
    assert [_target_at(made, at) for at in (acts - 1, acts, 59 + acts, 60 + acts)] == [None, *["lane=bulk"] * 2, None]


def test_the_times_of_a_pause_with_an_end_do_not_go_beyond_it() -> None:
    made = configured(paused("type=t", until=NOW + 60 * SECOND))
    later = configured(replace(A_FLAG, at=NOW + 3600 * SECOND), **made.document)
    early = RuntimeConfiguration(document=made.without_setting("pauses.type=t", now=NOW + 55 * SECOND))

    for each in (made, later, early):
        assert [_target_at(each, at) for at in (59, 60)] == ["type=t", None]


def test_a_past_pause_is_kept_for_the_latest_call_and_only_if_it_stopped_schedules() -> None:
    targets = ("schedule=t", "type=t", "lane=bulk", "tenant=schedule", "tenant=a:b", "group=a:b g", "limit=x")
    made = configured(*(paused(target, until=NOW + SECOND) for target in targets))
    after = NOW + SECOND + LATEST_CALL
    kept = configured(replace(A_FLAG, at=after - SECOND), **made.document)

    assert [entry["name"] for entry in kept.document["past_pauses"]] == [f"pauses.{target}" for target in targets[:4]]
    assert configured(replace(A_FLAG, at=after), **kept.document).document["past_pauses"] == []


def test_a_past_pause_is_kept_as_long_as_others_follow_it_without_a_gap() -> None:
    month = timedelta(days=30)
    extended = configured(paused("type=t"), paused("type=t", at=NOW + month))
    later = configured(replace(A_FLAG, at=NOW + 2 * month), **extended.document)
    since = later.schedule_paused_since("t", Lane.BULK, scheduled=NOW + 2 * month)

    assert since == NOW
    resumed = RuntimeConfiguration(document=later.without_setting("pauses.type=t", now=NOW + 2 * month))
    (past,) = resumed.document["past_pauses"]
    assert (past["at"], past["until"]) == (NOW.isoformat(), (NOW + 2 * month + ACTS_WITHIN).isoformat())
    assert configured(replace(A_FLAG, at=NOW + 3 * month), **resumed.document).document["past_pauses"] == []


def test_a_pause_that_is_extended_many_times_is_one_pause() -> None:
    hour, made = timedelta(hours=1), NOTHING_SET
    for number in range(100):
        at = NOW + number * hour
        made = configured(paused("type=t", at=at, until=at + 2 * hour), **made.document)

    assert made.schedule_paused_since("t", Lane.BULK, scheduled=NOW + 100 * hour) == NOW
    assert len(made.document["past_pauses"]) == 1


@pytest.mark.parametrize("apart", [timedelta(seconds=1), timedelta(hours=1)])
def test_two_pauses_of_a_target_with_times_between_them_stay_two(apart: timedelta) -> None:
    first = configured(paused("type=t", until=NOW + timedelta(hours=1)))
    again = NOW + timedelta(hours=1) - ACTS_WITHIN + apart
    second = configured(paused("type=t", at=again), **first.document)
    later = RuntimeConfiguration(document=second.without_setting("pauses.type=t", now=again + timedelta(hours=1)))

    assert len(later.document["past_pauses"]) == 2
    assert later.schedule_paused_since("t", Lane.BULK, scheduled=again + timedelta(minutes=30)) == again


def test_many_past_pauses_leave_room_for_settings() -> None:
    made = NOTHING_SET
    for number in range(100):
        target, at = f"type={number:0>100}", NOW + number * SECOND
        changed = configured(paused(target, at=at, reason="long " * 100), **made.document)
        made = RuntimeConfiguration(document=changed.without_setting(f"pauses.{target}", now=at))

    assert [entry["name"][-3:] for entry in made.document["past_pauses"]] == [f"0{number}" for number in range(20, 100)]
    assert len(json.dumps(made.document)) < 25_000


@pytest.mark.parametrize(
    "past",
    [7, "text", [7, {}, {"name": 7}, {"name": "pauses.type=t"}], [{**paused("type=t").encoded(), "name": 7}]],
)
def test_past_pauses_of_an_unknown_form_are_skipped(past: Any) -> None:
    assert _target_at(RuntimeConfiguration(document={"past_pauses": past}), 0) is None


def test_a_past_pause_without_an_end_hinders_no_change() -> None:
    """A newer version may keep such a pause. It would stop the schedule for ever, so the next change drops it."""
    past = {"name": "pauses.type=t", **paused("type=t").encoded()}

    assert configured(A_FLAG, past_pauses=[past]).document["past_pauses"] == []


def test_a_call_of_the_scheduler_comes_within_a_day_and_six_hours() -> None:
    """It is tried for a day until Lambda accepts it, and Lambda retries it for six hours."""
    assert timedelta(days=1, hours=6) == LATEST_CALL


def test_what_is_read_from_the_document_cannot_be_given() -> None:
    """So no copy, such as one that is stale, says anything else than its document."""
    given = {"version", "document", "stale", "acts_within"}
    for derived in {field.name for field in fields(RuntimeConfiguration)} - given:
        with pytest.raises(TypeError, match=derived):
            RuntimeConfiguration(**{derived: {}})  # type: ignore[arg-type]  # no such argument


def test_before_the_first_change_nothing_is_set() -> None:
    assert (NOTHING_SET.version, NOTHING_SET.stale, NOTHING_SET.settings) == (0, False, {})
    assert NOTHING_SET.document == {}
    assert not Change(version=1, name="flags.a", at=NOW, by="ada", reason="", value=None).removed
