"""Quotas: their values, their periods, and which one counts for a tenant."""

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tidemill.domain.admission.quotas import Quota, over
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration
from tidemill.domain.operations.setting import Setting

MINUTE = timedelta(minutes=1)
VALUE = {"count": 100, "period_seconds": 60}


def a_configuration(*settings: tuple[str, Any, Any]) -> RuntimeConfiguration:
    """Make a configuration of names, values and ends."""
    made = RuntimeConfiguration()
    for name, value, until in settings:
        setting = Setting(name=name, value=value, at=NOW, by="ada", reason="", until=until)
        made = RuntimeConfiguration(version=made.version + 1, document=made.with_setting(setting))
    return made


def test_a_quota_is_read() -> None:
    assert Quota.parse("a", VALUE) == Quota(count=100, period=MINUTE)


@pytest.mark.parametrize("count", [0, 100_000_000])
@pytest.mark.parametrize("period", [1, 86_400])
def test_a_quota_may_be_as_small_and_as_large_as_its_bounds(count: int, period: int) -> None:
    """None at all refuses each submission of the tenant."""
    quota = Quota.parse("a", {"count": count, "period_seconds": period})

    assert quota == Quota(count=count, period=period * SECOND)
    assert over(quota, shared=0, own=0) is (count == 0)


@pytest.mark.parametrize(
    ("tenant", "value", "message"),
    [
        ("", VALUE, "a quota names a tenant, 1 to 512 visible ASCII characters, not starting with '!', or default"),
        ("t" * 513, VALUE, "a quota names a tenant, 1 to 512 visible ASCII"),
        ("a\n", VALUE, "a quota names a tenant, 1 to 512 visible ASCII"),
        ("a", {**VALUE, "period_seconds": 10**400}, "period_seconds has too many digits; use a smaller number"),
        ("a", 5, 'a quota is 5; write it as {"count": 1000, "period_seconds": 60}'),
        ("a", {"count": 5}, "a quota is {'count': 5}; write it as"),
        ("a", {**VALUE, "burst": 5}, "write it as"),
        ("a", {**VALUE, "count": -1}, "count is -1; it must lie within 0 and 100000000"),
        ("a", {**VALUE, "count": "5"}, "count is '5'; it must be a whole number"),
        ("a", {**VALUE, "period_seconds": 0}, "period_seconds is 0; it must be positive"),
        ("a", {**VALUE, "period_seconds": 0.5}, "period_seconds is 0.5; it must lie within 1 and 86400"),
        ("a", {**VALUE, "period_seconds": 86_401}, "period_seconds is 86401; it must lie within 1 and 86400"),
    ],
)
def test_a_wrong_quota_is_refused(tenant: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidSettingError, match=re.escape(message)):
        a_configuration((f"quotas.{tenant}", value, None))


def test_periods_follow_each_other() -> None:
    quota = Quota(count=1, period=MINUTE)
    period = quota.period_of(NOW)

    assert period.begins <= NOW < period.ends
    assert period.ends - period.begins == MINUTE
    assert quota.period_of(period.ends).begins == period.ends


@pytest.mark.parametrize(("count", "share"), [(0, 1), (1, 1), (39, 1), (40, 2), (1_000, 50)])
def test_an_environment_counts_a_twentieth_by_itself(count: int, share: int) -> None:
    assert Quota(count=count, period=MINUTE).share == share


@pytest.mark.parametrize(("shared", "own", "refused"), [(9, 0, False), (10, 0, True), (4, 6, True), (4, 5, False)])
def test_a_quota_is_used_up_by_what_is_known(shared: int, own: int, *, refused: bool) -> None:
    assert over(Quota(count=10, period=MINUTE), shared=shared, own=own) is refused


def test_a_tenant_has_its_own_quota_or_else_the_default_one() -> None:
    settings = a_configuration(
        ("quotas.default", VALUE, None),
        ("quotas.111122223333:AROA", {**VALUE, "count": 7}, NOW + SECOND),
    )

    def count(tenant: str, *, late: bool = False) -> int:
        quota = settings.quota_of(tenant, now=NOW + SECOND if late else NOW)
        assert quota is not None
        return quota.count

    assert (count("111122223333:AROA"), count("another")) == (7, 100)
    assert count("111122223333:AROA", late=True) == 100
    assert a_configuration().quota_of("another", now=NOW) is None


def test_a_quota_that_only_a_newer_version_can_read_is_ignored() -> None:
    document = a_configuration(("quotas.a", VALUE, None)).document
    newer = {"settings": {name: {**entry, "value": {"burst": 5}} for name, entry in document["settings"].items()}}

    assert RuntimeConfiguration(document=newer).quota_of("a", now=NOW) is None
