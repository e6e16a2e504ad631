"""What explain says of a job that waits for a breaker."""

from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Facts, Reason
from tidemill.domain.breakers.breaker import Breaker, BreakerState
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Wait

JOB = a_job(
    state=State.PARKED,
    due=NOW + timedelta(days=1),
    wait=Wait(cause=Cause.BREAKER, key="payments", since=NOW),
)
OPEN = Breaker(
    name="payments",
    state=BreakerState.OPEN,
    since=NOW - 60 * SECOND,
    probe=("tenant", "job-7"),
    probe_at=NOW + 15 * SECOND,
)
FACTS = Facts(job=JOB, now=NOW, before_it=2, breaker=OPEN)


def test_it_names_the_open_breaker_and_the_next_probe() -> None:
    answer = explain(FACTS)

    assert answer.reason is Reason.BREAKER_OPEN
    assert answer.sentences[0].startswith("The breaker payments is open since ")
    assert "(in 15s), by job job-7. 2 jobs of its line are before it." in answer.sentences[0]


def test_it_says_that_wake_elects_the_next_probe() -> None:
    assert "Wake elects" in explain(replace(FACTS, breaker=replace(OPEN, probe=None))).sentences[0]


def test_it_names_the_last_failure() -> None:
    failed = replace(OPEN, last_error="JobTimeoutError")

    answer = explain(replace(FACTS, breaker=failed))

    assert answer.sentences[1] == "Its last failure was JobTimeoutError."


def test_it_says_that_the_breaker_has_closed() -> None:
    answer = explain(replace(FACTS, breaker=Breaker(name="payments")))

    assert answer.reason is Reason.BREAKER_CLOSED
    assert answer.sentences[0].startswith("The breaker payments has closed.")


@pytest.mark.parametrize(
    ("force", "reason"),
    [("open", Reason.BREAKER_OPEN), ("closed", Reason.BREAKER_CLOSED)],
)
@pytest.mark.parametrize(("given", "shown"), [("maintenance", ": maintenance"), ("", "")])
def test_it_names_the_operator_who_forces_it(force: str, reason: Reason, given: str, shown: str) -> None:
    forced = Setting(name="breakers.payments", value={"force": force}, at=NOW, by="eve", reason=given)

    answer = explain(replace(FACTS, forced=forced))

    assert (answer.reason, answer.until) == (reason, JOB.due)
    since = f"since 2045-03-04 05:06:07Z (0s ago){shown}"
    assert answer.sentences == (
        f"eve has forced the breaker payments {force} {since}. 2 jobs of its line are before it.",
        "`tidemill config set breakers.payments --remove` ends that.",
        "It is released 2045-03-05 05:06:07Z (in 1d) at the latest.",
    )
