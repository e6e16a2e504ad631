"""Type overrides: which values are allowed, and what they make of the declared ones."""

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.configurations import configured, overridden, shared
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.limits.adaptive_limit import Adaptive
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration
from tidemill.domain.operations.type_overrides import NO_OVERRIDES, TypeOverrides
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line

DECLARED = RetryPolicy(max_attempts=8, backoff_seconds=2, backoff_cap_seconds=60, max_hops=7)
RATE = Rate(count=10, period=timedelta(minutes=1))


def test_the_overrides_of_a_type_are_read_by_their_options() -> None:
    made = configured(
        overridden("mail.welcome.max_attempts", 3),
        overridden("mail.welcome.backoff_seconds", 1.5),
        overridden("mail.welcome.backoff_cap_seconds", 30),
        overridden("mail.welcome.timeout_seconds", 20),
        overridden("mail.welcome.concurrency_per_key", 2),
        overridden("mail.welcome.rate_per_key", {"count": 10, "period_seconds": 60}),
        overridden("mail.max_attempts", 5),
    )

    assert made.overrides_of("mail.welcome", now=NOW) == TypeOverrides(
        max_attempts=3, backoff_seconds=1.5, backoff_cap_seconds=30, timeout=20 * SECOND, concurrency=2, rate=RATE
    )
    assert made.overrides_of("mail", now=NOW) == TypeOverrides(max_attempts=5)
    # The same one: a type without overrides is not made anew for each run.
    assert made.overrides_of("other", now=NOW) is NO_OVERRIDES


def test_an_override_ends_at_its_time() -> None:
    made = configured(overridden("mail.max_attempts", 5, until=NOW + SECOND))

    assert [str(one.setting.value) for one in made.overrides(NOW)] == ["5"]
    assert made.overrides_of("mail", now=NOW + SECOND) == NO_OVERRIDES
    assert made.overrides(NOW + SECOND) == []


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("mail.max_attempts", 0, "max_attempts is 0; it must lie within 1 and 25"),
        ("mail.max_attempts", 26, "max_attempts is 26"),
        ("mail.max_attempts", True, "max_attempts is True; it must be a whole number"),
        ("mail.max_attempts", "3", "it must be a whole number"),
        ("mail.backoff_seconds", -1, "backoff must satisfy"),
        ("mail.backoff_seconds", "1", "backoff_seconds is '1'; it must be a number"),
        ("mail.backoff_cap_seconds", 86_401, "backoff must satisfy"),
        ("mail.timeout_seconds", 0, "timeout_seconds is 0; it must be positive"),
        ("mail.timeout_seconds", 901, "timeout_seconds is 901; no lane allows a run more than 900"),
        ("mail.concurrency_per_key", 101, "concurrency_per_key is 101; it must lie within 1 and 100"),
        ("mail.rate_per_key", 3, 'write it as {"count": 10, "period_seconds": 60}'),
        ("mail.rate_per_key", {"count": 1}, "write it as"),
        ("mail.rate_per_key", {"count": 0, "period_seconds": 60}, "a rate is at least 1"),
        ("mail.rate_per_key", {"count": 1, "period_seconds": 86_401}, "a rate is at least 1"),
        ("mail.max_hops", 3, "after the job type, use max_attempts, backoff_seconds"),
        ("max_attempts", 3, "the name of the job type is ''"),
        ("Mail.max_attempts", 3, "the name of the job type is 'Mail'"),
    ],
)
def test_an_invalid_override_is_refused_with_its_fault(name: str, value: Any, complaint: str) -> None:
    with pytest.raises(InvalidSettingError) as refused:
        configured(overridden(name, value))

    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("max_attempts", (1, 25)),
        ("backoff_seconds", (0, 86_400)),
        ("backoff_cap_seconds", (0, 0.5, 86_400)),
        ("timeout_seconds", (0.001, 900)),
        ("concurrency_per_key", (1, 100)),
    ],
)
def test_an_override_may_have_the_smallest_and_the_largest_value(option: str, values: tuple[float, ...]) -> None:
    for value in values:
        (override,) = configured(overridden(f"mail.{option}", value)).overrides(NOW)
        assert override.setting.value == value


def test_an_override_that_only_a_newer_version_reads_leaves_the_others() -> None:
    known = configured(overridden("mail.max_attempts", 3))
    entry = known.document["settings"]["types.mail.max_attempts"]
    entries = {
        **known.document["settings"],
        "types.mail.priority": entry,
        "types.mail.timeout_seconds": entry | {"value": "x"},
    }
    made = RuntimeConfiguration(document={"settings": entries})

    assert made.overrides_of("mail", now=NOW) == TypeOverrides(max_attempts=3)


@pytest.mark.parametrize(
    ("overrides", "changes"),
    [
        (NO_OVERRIDES, {}),
        (TypeOverrides(max_attempts=3), {"max_attempts": 3}),
        (TypeOverrides(backoff_seconds=0), {"backoff_seconds": 0}),
        (TypeOverrides(backoff_seconds=90), {"backoff_seconds": 90, "backoff_cap_seconds": 90}),
        (TypeOverrides(backoff_cap_seconds=1), {"backoff_seconds": 1, "backoff_cap_seconds": 1}),
        (
            TypeOverrides(backoff_seconds=90, backoff_cap_seconds=30),
            {"backoff_seconds": 30, "backoff_cap_seconds": 30},
        ),
    ],
)
def test_a_policy_keeps_what_is_not_overridden(overrides: TypeOverrides, changes: dict[str, Any]) -> None:
    values = {"max_attempts": 8, "backoff_seconds": 2, "backoff_cap_seconds": 60, "max_hops": 7}

    assert overrides.retry(DECLARED) == RetryPolicy(**(values | changes))


def test_a_limit_keeps_what_is_not_overridden_and_may_be_new() -> None:
    declared = Limit(concurrency=5, rate=RATE)

    assert NO_OVERRIDES.limit(None) is None
    assert NO_OVERRIDES.limit(declared) == declared
    assert TypeOverrides(concurrency=2).limit(declared) == Limit(concurrency=2, rate=RATE)
    assert TypeOverrides(rate=RATE).limit(Limit(concurrency=5)) == declared
    assert TypeOverrides(concurrency=2).limit(None) == Limit(concurrency=2)


def test_an_overridden_concurrency_does_not_adapt() -> None:
    declared = Limit(adaptive=Adaptive(ceiling=9, target_seconds=1))

    assert TypeOverrides(concurrency=2).limit(declared) == Limit(concurrency=2)
    assert TypeOverrides(rate=RATE).limit(declared) == replace(declared, rate=RATE)
    assert TypeOverrides(max_attempts=2).limit(declared) == declared


def test_a_shared_limit_has_overrides_of_its_own() -> None:
    declared = Limit(concurrency=5)
    line, own = Line.for_limit('["limit:payments", ""]'), Line.for_limit('["order.charge", ""]')
    made = configured(shared("payments.concurrency_per_key", 2), overridden("order.charge.concurrency_per_key", 7))

    assert made.limit_of(line, declared, last=None, now=NOW) == Limit(concurrency=2)
    assert made.limit_of(own, declared, last=None, now=NOW) == Limit(concurrency=7)
    assert made.limit_of(Line.for_limit('["limit:mail", ""]'), declared, last=None, now=NOW) == declared
    assert made.overrides_of("order.charge", shares="payments", now=NOW) == TypeOverrides(concurrency=2)
    assert made.overrides_of("order.charge", now=NOW) == TypeOverrides(concurrency=7)


def test_an_override_of_the_limit_of_a_type_does_not_act_on_its_shared_limit() -> None:
    limits = [("concurrency_per_key", 9), ("rate_per_key", {"count": 10, "period_seconds": 60}), ("max_attempts", 3)]
    made = configured(*(overridden(f"order.charge.{name}", value) for name, value in limits))

    assert made.overrides_of("order.charge", shares="payments", now=NOW) == TypeOverrides(max_attempts=3)
    assert made.overrides_of("order.charge", now=NOW).concurrency == 9


def test_an_override_of_a_shared_limit_ends() -> None:
    made = configured(shared("payments.rate_per_key", {"count": 10, "period_seconds": 60}, until=NOW + SECOND))

    assert made.overrides_of("any", shares="payments", now=NOW) == TypeOverrides(rate=RATE)
    assert made.overrides_of("any", shares="payments", now=NOW + SECOND) == NO_OVERRIDES


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("payments.max_attempts", 3, "after the shared limit, use concurrency_per_key, rate_per_key"),
        ("Payments.concurrency_per_key", 3, "the name of the shared limit is 'Payments'"),
        ("payments.concurrency_per_key", 0, "concurrency_per_key is 0; it must lie within 1 and 100"),
    ],
)
def test_a_wrong_override_of_a_shared_limit_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidSettingError, match=re.escape(message)):
        configured(shared(name, value))
    entry = {"value": value, "at": NOW.isoformat(), "by": "ada", "reason": ""}
    assert RuntimeConfiguration(document={"settings": {f"limits.{name}": entry}}).overrides(NOW) == []


def test_a_flag_with_the_name_of_an_option_overrides_no_limit() -> None:
    flag = replace(
        overridden("payments.rate_per_key", {"count": 10, "period_seconds": 60}), name="flags.x.rate_per_key"
    )

    assert configured(flag).overrides(NOW) == []
    assert configured(flag).overrides_of("test.job", shares="flags.x", now=NOW) == NO_OVERRIDES


def test_an_override_names_the_type_or_the_shared_limit_that_it_changes() -> None:
    made = configured(overridden("mail.send.max_attempts", 3), shared("payments.concurrency_per_key", 2))

    assert [one.overridden.whose for one in made.overrides(NOW)] == ["mail.send", "shared limit payments"]


def test_a_rate_alone_makes_a_limit_of_a_type_that_has_none() -> None:
    assert TypeOverrides(rate=RATE).limit(None) == Limit(rate=RATE)
    assert NO_OVERRIDES.limit(None) is None
