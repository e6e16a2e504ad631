"""Limit keys: their text, which names a line and an item, and what a reader makes of it."""

import json
from typing import Any

import pytest

from tidemill.domain.limits.limit_key import LONGEST_KEY, LimitKey
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Cause, Line

#: Its text must stay: it names items of the table.
KEYS = {
    '["mail.send", ""]': LimitKey(type="mail.send"),
    '["mail.send", "a"]': LimitKey(type="mail.send", text="a"),
    '["limit:payments", "a"]': LimitKey(shared="payments", text="a"),
    '["mail.send", "a", {"lane": "bulk"}]': LimitKey(type="mail.send", text="a", lane="bulk"),
    '["limit:payments", "", "tenant"]': LimitKey(shared="payments", tenant="tenant"),
    '["limit:payments", "a", {"lane": "bulk"}, "tenant"]': LimitKey(
        shared="payments", text="a", lane="bulk", tenant="tenant"
    ),
}


@pytest.mark.parametrize("text", KEYS)
def test_a_limit_key_is_read_as_it_was_written(text: str) -> None:
    assert str(KEYS[text]) == text
    assert LimitKey.of(json.loads(text)) == KEYS[text]


LONG = LimitKey(type="mail.send", text="a" * 300, lane="bulk", tenant="ada")


@pytest.mark.parametrize("long", [LONG, replace(LONG, type=None, shared="payments"), replace(LONG, tenant="b" * 2048)])
def test_a_long_limit_key_is_short_and_says_whose_limit_it_is(long: LimitKey) -> None:
    line = Line.for_limit(str(long))
    assert len(line.key) <= LONGEST_KEY
    read = line.limit_key
    assert read is not None
    assert (read.type, read.shared, read.lane, read.tenant) == (long.type, long.shared, long.lane, None)


def test_long_limit_keys_differ_wherever_their_members_do() -> None:
    others = [replace(LONG, text="b" * 300), replace(LONG, tenant="bob"), replace(LONG, tenant=None)]
    assert len({str(key) for key in (LONG, *others)}) == 4


@pytest.mark.parametrize(("characters", "hashed"), [(239, False), (240, True)])
def test_a_limit_key_of_the_greatest_length_stays_as_it_is(characters: int, hashed: bool) -> None:
    key = LimitKey(type="mail.send", text="a" * characters)
    assert (str(key) == json.dumps(["mail.send", "a" * characters])) is not hashed


@pytest.mark.parametrize(
    ("parts", "read"),
    [
        (None, None),
        ([], None),
        ("mail.send", None),
        ({"tenant": "a", "lane": "bulk"}, None),
        (["mail.send"], LimitKey(type="mail.send")),
        (["mail.send", 7], LimitKey(type="mail.send", text="7")),
        (["mail.send", "a", {"other": 1}, 5], LimitKey(type="mail.send", text="a")),
    ],
)
def test_a_text_of_another_version_is_read_as_far_as_it_is_known(parts: Any, read: LimitKey | None) -> None:
    assert LimitKey.of(parts) == read


@pytest.mark.parametrize(
    ("key", "title"),
    [
        (LimitKey(type="mail.send"), "limit"),
        (LimitKey(type="mail.send", lane="bulk", tenant="a"), "limit of lane bulk"),
        (LimitKey(shared="payments"), "shared limit payments"),
        (LimitKey(shared="payments", lane="bulk"), "shared limit payments of lane bulk"),
    ],
)
def test_a_limit_key_says_what_kind_of_limit_it_is(key: LimitKey, title: str) -> None:
    assert key.title == title
    assert str(Line.for_limit(str(key))) == f"{title} {key}"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (Line.for_limit("k" * 257), "limit a5de0e3c"),
        (Line.for_pause("lane=bulk"), "pause lane=bulk"),
        (Line.for_type("mail.send"), "type mail.send"),
        (Line.for_breaker("payments"), "breaker payments"),
        (Line(Cause.SIGNAL, "approval"), "signal approval"),
        # It is not a limit, although its key is a text like that of one.
        (Line.for_pause('["mail.send", "a"]'), 'pause ["mail.send", "a"]'),
    ],
)
def test_a_line_names_its_cause_and_its_key(line: Line, text: str) -> None:
    assert str(line).startswith(text)
    assert line.limit_key is None
