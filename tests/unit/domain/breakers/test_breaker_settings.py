"""The setting that forces a breaker: its values, and its end."""

from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.configurations import configured
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration, check
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace

FORCED = Setting(name="breakers.payments", value={"force": "open"}, at=NOW, by="eve", reason="")


@pytest.mark.parametrize("state", ["open", "closed"])
def test_a_breaker_may_be_forced_open_or_closed(state: str) -> None:
    check(replace(FORCED, value={"force": state}))


@pytest.mark.parametrize(
    "value", ["open", ["force"], {"force": "half-open"}, {"force": []}, {}, {"force": "open", "more": 1}]
)
def test_any_other_value_is_refused(value: Any) -> None:
    with pytest.raises(InvalidSettingError, match="the value of the breaker payments is"):
        check(replace(FORCED, value=value))


def test_the_name_is_that_of_a_downstream() -> None:
    with pytest.raises(InvalidSettingError, match="the name of the downstream"):
        check(replace(FORCED, name="breakers.Payments!"))


def test_it_forces_the_breaker_of_its_name_until_its_end() -> None:
    configuration = configured(replace(FORCED, until=NOW + SECOND))
    assert configuration.forced_breaker("payments", now=NOW) is not None
    assert configuration.forced_breaker("payments", now=NOW + SECOND) is None
    assert configuration.forced_breaker("mail", now=NOW) is None


def test_a_value_of_a_newer_version_forces_nothing() -> None:
    entry = {"value": {"force": "slow"}, "at": NOW.isoformat(), "by": "eve", "reason": ""}
    configuration = RuntimeConfiguration(version=1, document={"settings": {"breakers.payments": entry}})
    assert configuration.forced_breaker("payments", now=NOW) is None


def test_the_forced_breakers_are_named_in_order_without_those_that_force_nothing() -> None:
    mail, ended = replace(FORCED, name="breakers.mail"), replace(FORCED, name="breakers.old", until=NOW + SECOND)
    flag = replace(FORCED, name="flags.payments")
    configuration = configured(FORCED, mail, ended, flag)

    assert configuration.forced_breakers(NOW + SECOND) == {"mail": mail, "payments": FORCED}
    assert list(configuration.forced_breakers(NOW)) == ["mail", "old", "payments"]
