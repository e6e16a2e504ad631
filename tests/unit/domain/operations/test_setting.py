"""One setting: its entry in the document, and entries that this version cannot read."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW
from tidemill.domain.operations.setting import Setting, decoded
from tidemill.domain.records import replace

SETTING = Setting(name="flags.new", value={"on": True}, at=NOW, by="ada", reason="a trial", until=NOW + MILLISECOND)
ENTRY = {"value": 5, "at": "2045-03-04T05:06:07+00:00", "by": "ada", "reason": "a trial"}


@pytest.mark.parametrize("setting", [SETTING, replace(SETTING, until=None), replace(SETTING, value=None, reason="")])
def test_a_setting_is_read_as_it_was_written(setting: Setting) -> None:
    entry = setting.encoded()

    assert decoded(setting.name, entry) == setting
    assert ("until" in entry) is (setting.until is not None)
    assert "name" not in entry


@pytest.mark.parametrize(
    "entry",
    [
        *({name: value for name, value in ENTRY.items() if name != missing} for missing in ENTRY),
        ENTRY | {"at": "2045-03-04T05:06:07"},
        ENTRY | {"at": "soon"},
        ENTRY | {"at": 5},
        ENTRY | {"until": "2045-03-04T05:06:07"},
        ENTRY | {"until": None},
        None,
        "text",
        [],
    ],
)
def test_an_entry_that_this_version_cannot_read_is_left_out(entry: Any) -> None:
    assert decoded("flags.new", ENTRY) is not None
    assert decoded("flags.new", entry) is None


@pytest.mark.parametrize(("after", "in_force"), [(timedelta(0), True), (MILLISECOND, False)])
def test_a_setting_counts_until_its_end(after: timedelta, *, in_force: bool) -> None:
    assert SETTING.in_force(NOW + after) is in_force
    assert replace(SETTING, until=None).in_force(NOW + after)
