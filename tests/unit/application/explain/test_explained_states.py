"""The reason that explain gives for each state of a job, and for each thing that a parked job waits for."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import A_WAIT, NOW, SECOND, a_job
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Facts, Reason
from tidemill.domain.breakers.breaker import Breaker, BreakerState
from tidemill.domain.limits.limit_state import LimitState
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.pauses import Pause, Scope, Target
from tidemill.domain.waiting.signals import Awaited
from tidemill.domain.waiting.waiting import Cause, Wait

LATER = NOW + timedelta(minutes=5)
#: 2045-03-04 06:11:07Z, an hour after the answer.
DUE = LATER + timedelta(hours=1)
ROOM = "Wake releases the first jobs of the line within a minute."
LATEST = "It is released 2045-03-04 06:11:07Z (in 1h) at the latest."
WAKE_STOPPED = "Wake is not called, because its schedule is not enabled. `tidemill status` shows the command."
WAITS = Awaited(cause=Cause.SIGNAL, name="approval", since=NOW, until=DUE)
RATE = Limit(rate=Rate(count=1, period=timedelta(minutes=1)))
SLOTS = Limit(concurrency=2)


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"state": State.SUCCEEDED, "finished_at": NOW}, Reason.ENDED, "It succeeded 2045-03-04 05:06:07Z (5m ago)."),
        ({"state": State.CANCELLED, "finished_at": NOW}, Reason.ENDED, "It was cancelled 2045-03-04 05:06:07Z"),
        ({"state": State.DEAD, "finished_at": NOW}, Reason.DEAD, "It died 2045-03-04 05:06:07Z (5m ago): no reason"),
        ({"state": State.RUNNING, "claimed_at": NOW, "due": DUE}, Reason.RUNNING, "A worker has run it since 2045-"),
        ({"state": State.RUNNING, "claimed_at": NOW, "due": LATER}, Reason.LEASE_OVER, "The lease of attempt 0 ended"),
        ({"state": State.WAITING, "group": "g", "due": None}, Reason.GROUP_TURN, "The group g moves on as soon as"),
        ({"state": State.PARKED, "awaited": WAITS, "wait": WAITS.wait, "due": DUE}, Reason.AWAITED, "It waits: "),
        ({"state": State.QUEUED, "awaited": WAITS, "due": DUE}, Reason.AWAITED, "It waits: "),
        ({"state": State.PARKED, "wait": A_WAIT, "due": DUE}, Reason.LINE_MOVES, f"The {A_WAIT.line} has room."),
        ({"state": State.SCHEDULED, "due": DUE}, Reason.DELAYED, "It was submitted to run"),
        ({"state": State.SCHEDULED, "due": LATER}, Reason.WAKE_LATE, "Its time came"),
        ({"state": State.QUEUED, "due": DUE}, Reason.DELAYED, "It was submitted to run"),
        ({"state": State.QUEUED, "due": LATER}, Reason.READY, "It has been ready since"),
        ({"state": State.QUEUED, "due": None}, Reason.READY, "It has been ready since at an unknown time."),
        ({"state": State.RETRYING, "due": LATER}, Reason.READY, "It has been ready since"),
        ({"state": State.RETRYING, "due": DUE}, Reason.RELEASED, "Its last run gave the claim back"),
    ],
)
def test_each_state_has_its_reason(changes: dict[str, Any], reason: Reason, words: str) -> None:
    answer = explain(Facts(job=a_job(**changes), now=LATER))

    assert answer.reason is reason
    assert answer.sentences[0].startswith(words)


def _use(limit: Limit | None, **known: Any) -> LimitState:
    return LimitState(limit=limit, marked=True, **known)


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (None, Reason.LINE_MOVES),
        (_use(None, held={"a": DUE}), Reason.LINE_MOVES),
        (_use(SLOTS, held={"a": DUE}), Reason.LINE_MOVES),
        (_use(SLOTS, held={"a": DUE, "b": LATER}), Reason.LINE_MOVES),
        (_use(SLOTS, held={"a": DUE, "b": LATER + SECOND}), Reason.NO_SLOT),
        (_use(RATE, held={"a": DUE}, arrival=LATER), Reason.LINE_MOVES),
        (_use(RATE, arrival=LATER + SECOND), Reason.NO_RATE),
        (_use(RATE, promised=LATER), Reason.LINE_MOVES),
        (_use(RATE, promised=LATER + SECOND), Reason.NO_RATE),
        # A slower rate, which is no longer in force, has set this time.
        (_use(RATE, promised=DUE, spacing=timedelta(hours=1)), Reason.LINE_MOVES),
        (_use(RATE, promised=DUE, spacing=timedelta(minutes=1)), Reason.NO_RATE),
        (_use(SLOTS, held={"a": DUE}, promised=DUE), Reason.LINE_MOVES),
    ],
)
def test_the_use_of_its_limit_says_what_a_parked_job_waits_for(use: LimitState | None, reason: Reason) -> None:
    job = a_job(state=State.PARKED, wait=A_WAIT, due=DUE)
    answer = explain(Facts(job=job, now=LATER, limit=use))

    assert (answer.reason, answer.until) == (reason, DUE)


@pytest.mark.parametrize(
    ("changes", "known", "sentences"),
    [
        ({"wait": A_WAIT}, {}, (f"The {A_WAIT.line} has room. {ROOM}", LATEST)),
        # An older version noted no wait.
        ({}, {"before_it": 0}, (f"Its limit has room. It is the first of its line. {ROOM}", LATEST)),
        ({}, {"before_it": 1}, (f"Its limit has room. 1 job of its line is before it. {ROOM}", LATEST)),
        ({}, {"stopped": {"wake"}}, (f"Its limit has room. {ROOM}", WAKE_STOPPED)),
        ({}, {"stopped": {"publish"}}, (f"Its limit has room. {ROOM}", LATEST)),
        (
            {},
            {"limit": _use(RATE, promised=LATER + SECOND)},
            (
                "Its limit lets 1 in 60 s start, and the next one 2045-03-04 05:11:08Z (in 1s).",
                f"Wake releases the jobs of the line in order. {LATEST}",
            ),
        ),
    ],
)
def test_a_parked_job_learns_its_place_and_what_releases_it(
    changes: dict[str, Any], known: dict[str, Any], sentences: tuple[str, ...]
) -> None:
    job = a_job(state=State.PARKED, due=DUE, **changes)

    assert explain(replace(Facts(job=job, now=LATER), **known)).sentences == sentences


PAUSE = Pause(target=Target(scope=Scope.LANE, name="bulk"), since=NOW, until=DUE, by="ada", reason="a fire")
PAUSED = "lane=bulk is paused by ada since 2045-03-04 05:06:07Z (5m ago)"
DRAINS = "Wake releases the jobs of its line in order, at a rate."
ENDLESS = replace(PAUSE, until=None, reason="")
PROBED = Breaker(name="pay", state=BreakerState.OPEN, since=NOW, probe=("t", "j"), probe_at=LATER + SECOND)
OPEN_SINCE = "The breaker pay is open since 2045-03-04 05:06:07Z (5m ago)."
PROBE = "The next probe is 2045-03-04 05:11:08Z (in 1s), by job j."
STARTS = "the jobs of its line start in order, at a rate that grows."


@pytest.mark.parametrize(
    ("cause", "known", "reason", "sentences"),
    [
        (
            Cause.PAUSE,
            {"pause": PAUSE},
            Reason.PAUSED,
            (
                f"{PAUSED}, until 2045-03-04 06:11:07Z (in 1h): a fire.",
                "`tidemill resume lane=bulk` ends the pause.",
            ),
        ),
        (
            Cause.PAUSE,
            {"pause": ENDLESS, "before_it": 0},
            Reason.PAUSED,
            (
                f"{PAUSED}, until it is resumed. It is the first of its line.",
                "`tidemill resume lane=bulk` ends the pause.",
            ),
        ),
        (
            Cause.PAUSE,
            {},
            Reason.RESUMED,
            (f"The pause pay has ended. {DRAINS}", LATEST),
        ),
        (
            Cause.PAUSE,
            {"stopped": {"wake"}, "before_it": 2},
            Reason.RESUMED,
            (
                f"The pause pay has ended. 2 jobs of its line are before it. {DRAINS}",
                WAKE_STOPPED,
            ),
        ),
        (
            Cause.TYPE,
            {},
            Reason.UNLOADED,
            (
                "The workers could not load the type pay, because a job file is broken.",
                "Once fixed code is deployed, wake releases the jobs of the line in order, at a rate.",
                "The log lines `broken job file` of the workers name the file, the line and the error.",
            ),
        ),
        (Cause.BREAKER, {}, Reason.BREAKER_CLOSED, (f"The breaker pay has closed. T{STARTS[1:]}", LATEST)),
        (
            Cause.BREAKER,
            {"breaker": PROBED, "before_it": 0, "stopped": {"wake"}},
            Reason.BREAKER_OPEN,
            (
                f"{OPEN_SINCE} {PROBE} It is the first of its line.",
                f"Once a probe succeeds, {STARTS}",
                WAKE_STOPPED,
                LATEST,
            ),
        ),
        (
            Cause.BREAKER,
            {"breaker": PROBED},
            Reason.BREAKER_OPEN,
            (f"{OPEN_SINCE} {PROBE}", f"Once a probe succeeds, {STARTS}", LATEST),
        ),
    ],
)
def test_a_parked_job_learns_what_else_holds_its_line(
    cause: Cause, known: dict[str, Any], reason: Reason, sentences: tuple[str, ...]
) -> None:
    job = a_job(state=State.PARKED, wait=Wait(cause=cause, key="pay", since=NOW), due=DUE)
    answer = explain(replace(Facts(job=job, now=LATER), **known))

    assert (answer.reason, answer.sentences) == (reason, sentences)
    assert answer.until == (known["pause"].until if "pause" in known else DUE)
