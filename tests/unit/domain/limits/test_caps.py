"""Caps: their values, which one counts for a tenant, and the line of those above it."""

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.configurations import capped, configured
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.limits.caps import LARGEST_CAP
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.waiting.waiting import Cause, Line
from tidemill.names import Lane

TWO = Limit(concurrency=2)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("caps.", 5, "a cap names a tenant, 1 to 512 visible ASCII characters, not starting with '!', or default"),
        ("caps." + "t" * 513, 5, "a cap names a tenant, 1 to 512 visible ASCII"),
        ("caps.a b", 5, "a cap names a tenant, 1 to 512 visible ASCII"),
        ("caps.!a", 5, "not starting with '!'"),
        ("caps.a", "5", "a cap is '5'; it must be a whole number, or null for no bound"),
        ("caps.a", True, "a cap is True; it must be a whole number"),
        ("caps.a", 0, "a cap is 0; it must lie within 1 and 100. A pause stops all jobs"),
        ("caps.a", 101, "a cap is 101; it must lie within 1 and 100"),
        ("weights.", 2, "a weight names a tenant, 1 to 512 visible ASCII"),
        ("weights.ä", 2, "a weight names a tenant, 1 to 512 visible ASCII"),
        ("weights.default", 2, "a weight names one tenant; to change the cap of each, set caps.default"),
        ("weights.a", 10**400, "a weight has too many digits; use a smaller number"),
        ("weights.a", "2", "a weight is '2'; it must be a number"),
        ("weights.a", 0, "a weight is 0; it must be positive and at most 100"),
        ("weights.a", 100.5, "a weight is 100.5; it must be positive and at most 100"),
    ],
)
def test_a_wrong_value_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidSettingError, match=re.escape(message)):
        configured(capped(name, value))


@pytest.mark.parametrize(
    ("settings", "cap"),
    [
        ([], None),
        ([("weights.a", 2)], None),
        ([("caps.b", 5)], None),
        ([("caps.default", 5)], 5),
        ([("caps.default", 5), ("caps.a", 1)], 1),
        ([("caps.default", 5), ("weights.a", 3)], 15),
        ([("caps.default", 5), ("weights.b", 3)], 5),
        ([("caps.default", 5), ("weights.a", 0.5)], 2),
        ([("caps.default", 5), ("weights.a", 0.1)], 1),
        ([("caps.default", 100), ("weights.a", 0.29)], 29),
        ([("caps.default", 100), ("weights.a", 0.299)], 29),
        ([("caps.default", 5), ("weights.a", 100)], LARGEST_CAP),
        ([("caps.default", 5), ("weights.a", 3), ("caps.a", 4)], 4),
        ([("caps.default", 5), ("caps.a", None)], None),
        ([("caps.default", None), ("weights.a", 2)], None),
    ],
)
def test_its_own_cap_counts_or_else_the_default_one_times_the_weight(
    settings: list[tuple[str, Any]], cap: int | None
) -> None:
    assert configured(*(capped(name, value) for name, value in settings)).cap_of("a", now=NOW) == cap


def test_a_setting_of_another_kind_is_not_a_cap_of_a_tenant_with_its_name() -> None:
    configuration = configured(capped("weights.a", 2), capped("caps.b", 3))

    assert [configuration.cap_of(tenant, now=NOW) for tenant in ("weights.a", "a", "b")] == [None, None, 3]
    assert configured(capped("caps.default", 5), capped("caps.b", 3)).cap_of("caps.b", now=NOW) == 5


def test_what_has_ended_counts_no_more() -> None:
    until = NOW + SECOND
    configuration = configured(
        capped("caps.default", 4), capped("weights.a", 2, until=until), capped("caps.b", 1, until=until)
    )

    assert [configuration.cap_of(tenant, now=NOW) for tenant in "ab"] == [8, 1]
    assert [configuration.cap_of(tenant, now=until) for tenant in "ab"] == [4, 4]
    assert configured(capped("caps.default", 4, until=until)).cap_of("a", now=until) is None


def test_a_cap_that_only_a_newer_version_can_read_counts_for_nothing() -> None:
    entry = {"value": {"runs": 5}, "at": NOW.isoformat(), "by": "ada", "reason": ""}
    assert RuntimeConfiguration(document={"settings": {"caps.a": entry}}).cap_of("a", now=NOW) is None


def test_a_line_names_the_tenant_and_the_lane_of_its_cap() -> None:
    line = Line.for_cap("a", "bulk")

    assert (line.cause, line.capped, line.limit_key) == (Cause.LIMIT, ("a", "bulk"), None)
    assert str(line) == "cap of tenant a in lane bulk"
    assert Line.for_limit('["mail.send", "a"]').capped is None
    assert Line.for_limit('{"lane": "bulk"}').capped is None
    assert Line.for_limit('{"tenant": "a"}').capped is None
    assert Line.for_pause(line.key).capped is None


def test_a_long_tenant_has_a_line_too() -> None:
    line = Line.for_cap("t" * 512, "bulk")
    assert (line.capped, len(line.key)) == (None, 64)


@pytest.mark.parametrize(
    ("line", "last", "tenant"),
    [
        (Line.for_cap("a", "bulk"), None, "a"),
        (Line.for_cap("a", "bulk"), "b", "a"),
        (Line.for_cap("t" * 512, "bulk"), "t" * 512, "t" * 512),
        (Line.for_cap("t" * 512, "bulk"), "b", None),
        *((Line.for_cap("t" * 512, lane), "t" * 512, "t" * 512) for lane in Lane),
        (Line.for_cap("t" * 512, "bulk"), None, None),
        (Line.for_limit('["mail.send", "a"]'), "a", None),
        (Line.for_limit("k" * 512), "k" * 512, None),
        (Line.for_pause("lane=bulk"), "a", None),
        (Line.for_pause("t" * 512), "t" * 512, None),
        (Line(Cause.PAUSE, Line.for_cap("t" * 512, "bulk").key), "t" * 512, None),
    ],
)
def test_the_last_job_tells_the_tenant_whose_hash_names_the_line(line: Line, last: str | None, tenant: str) -> None:
    assert line.capped_tenant(last) == tenant


def test_the_limit_of_a_line_is_the_present_cap() -> None:
    line, configuration = Line.for_cap("a", "bulk"), configured(capped("caps.a", 5, until=NOW + SECOND))

    assert configuration.limit_of(line, TWO, last=None, now=NOW) == Limit(concurrency=5)
    # It has ended, and those that still wait for it come in order.
    assert configuration.limit_of(line, TWO, last=None, now=NOW + timedelta(days=1)) == Limit(concurrency=LARGEST_CAP)


def test_without_a_recent_read_the_last_known_cap_counts() -> None:
    stale = RuntimeConfiguration(stale=True)
    assert stale.limit_of(Line.for_cap("a", "bulk"), TWO, last="a", now=NOW) == TWO
    assert NOTHING_SET.limit_of(Line.for_cap("t" * 512, "bulk"), TWO, last=None, now=NOW) == TWO
