"""The runtime configuration: settings by name, what a version knows of them, and what it keeps of others."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.configurations import A_FLAG, configured
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.runtime_configuration import LARGEST_DOCUMENT, NOTHING_SET, RuntimeConfiguration


def test_a_setting_is_read_as_it_was_set() -> None:
    ending = replace(A_FLAG, name="flags.size", value={"n": [1, None]}, until=NOW + SECOND)

    assert configured(A_FLAG, ending).settings == {A_FLAG.name: A_FLAG, ending.name: ending}
    assert configured(A_FLAG, replace(A_FLAG, value="red")).flags(NOW) == {"colour": "red"}


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
        ({"name": "colour"}, "begins with flags., pauses. or types."),
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


def test_removing_what_is_not_set_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match=r"no setting 'flags\.colour' is in force"):
        NOTHING_SET.without_setting(A_FLAG.name, now=NOW)
    assert configured(A_FLAG).without_setting(A_FLAG.name, now=NOW) == {"settings": {}}
