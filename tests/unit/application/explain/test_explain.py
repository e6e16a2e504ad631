"""Reasons that no simulated seed reaches: functions that nothing calls. And the words of the others."""

import shlex
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import A_BURST, A_WAIT, NOW, SECOND, a_job
from tidemill.application.dispatch.owed import Kind, Owed, Work
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Facts, GroupHead, LaneDepth, Reason
from tidemill.domain.job import Job, Redrive
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, Trouble
from tidemill.domain.limits.limit_state import LimitState
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Line, Wait

LATER = NOW + timedelta(minutes=5)
EMPTY = LaneDepth(waiting=0, delayed=0, in_flight=0)
BUSY = LaneDepth(waiting=40, delayed=2, in_flight=10)


def facts(job: Job, **known: object) -> Facts:
    return replace(Facts(job=job, now=LATER), **known)  # type: ignore[arg-type]  # whichever facts


@pytest.mark.parametrize(
    ("lane", "stopped", "reason"),
    [
        (EMPTY, {"publish"}, Reason.PUBLISH_STOPPED),
        (EMPTY, {"work"}, Reason.NO_MESSAGE),
        (BUSY, {"work"}, Reason.LANE_STOPPED),
        (BUSY, {"publish"}, Reason.ON_LANE),
        (None, {"publish"}, Reason.READY),
        (BUSY, set(), Reason.ON_LANE),
    ],
)
def test_a_ready_job_waits_for_what_is_not_called(lane: LaneDepth | None, stopped: set[str], reason: Reason) -> None:
    answer = explain(facts(a_job(), lane=lane, stopped=frozenset(stopped)))
    assert answer.reason is reason


def test_a_stopped_publisher_is_named_beside_a_busy_lane() -> None:
    answer = explain(facts(a_job(), lane=BUSY, stopped=frozenset({"publish"})))
    assert any("Publish is not called" in sentence for sentence in answer.sentences)


def test_a_scheduled_job_names_a_stopped_wake() -> None:
    job = a_job(state=State.SCHEDULED, due=LATER + timedelta(hours=1))
    assert "Wake is not called" in explain(facts(job, stopped=frozenset({"wake"}))).sentences[1]
    assert explain(facts(job)).until == job.due
    late = a_job(state=State.SCHEDULED, due=NOW)
    assert "Wake is not called" in explain(facts(late, stopped=frozenset({"wake"}))).sentences[1]


def test_a_debounced_job_that_was_paused_names_its_submissions() -> None:
    paused = Wait(cause=Cause.PAUSE, key="lane=bulk", since=NOW)
    due = LATER + timedelta(minutes=4)
    answer = explain(facts(a_job(due=due, run_at=due, wait=paused, burst=A_BURST)))
    assert (answer.reason, answer.until) == (Reason.DELAYED, due)
    assert answer.sentences[0].startswith("It is debounced")


def test_a_group_whose_turn_is_owed_names_the_error() -> None:
    job = a_job(state=State.WAITING, group="g", sequence=3, due=None)
    owed = Owed(
        work=Work(kind=Kind.ADVANCE, tenant=job.tenant, name="g"),
        since=NOW,
        next_try=LATER + SECOND,
        tries=2,
        error="the table was too busy",
        resent=False,
        version="v",
        failures=1,
    )
    answer = explain(facts(job, head=GroupHead(job_id="gone", job=None), owed=owed))
    assert answer.reason is Reason.GROUP_TURN
    assert "the table was too busy" in answer.sentences[1]


def test_the_head_of_the_group_is_named_with_the_distance() -> None:
    head = a_job(id="head", group="g", sequence=3, state=State.RETRYING)
    answer = explain(facts(a_job(state=State.WAITING, group="g", sequence=5), head=GroupHead(job_id="head", job=head)))
    assert "Job head is at the head of the group g, and is retrying." in answer.sentences[0]
    assert "It is 2 places behind the head." in answer.sentences[1]


def test_the_commands_for_a_head_that_blocks_its_group_are_safe_in_a_shell() -> None:
    tenant, name = "a:b; touch owned", "$(touch owned)"
    head = a_job(id=name, tenant=tenant, group="g", state=State.DEAD, blocks=True, death="permanent error")
    job = a_job(tenant=tenant, state=State.WAITING, group="g", sequence=5)
    commands = explain(facts(job, head=GroupHead(job_id=name, job=head))).sentences[1].split("`")[1::2]
    assert [shlex.split(command) for command in commands] == [
        ["tidemill", "redrive", name],
        ["tidemill", "cancel", name, "--tenant", tenant],
    ]


def test_what_also_concerns_a_live_job_is_added() -> None:
    later = {"deadline": LATER + SECOND, "useful_until": LATER + SECOND}
    job = a_job(nudges=2, nudged_at=NOW, cancel_requested_at=NOW, **later)
    *_, cancel, nudged, deadline, useful = explain(facts(job, lane=BUSY)).sentences
    assert cancel.startswith("A cancel was requested")
    assert nudged.startswith("Reconcile has sent it again 2 times without a claim")
    assert deadline.startswith("If no run begins by 2045-03-04 05:11:08Z (in 1s), it dies.")
    assert useful == "A run that would begin after 2045-03-04 05:11:08Z (in 1s) comes too late: it expires then."


def test_an_expired_job_says_since_when_it_was_too_old() -> None:
    answer = explain(facts(a_job(state=State.EXPIRED, due=None, useful_until=NOW, finished_at=NOW)))
    assert answer.reason is Reason.ENDED
    assert answer.sentences[0].startswith("It expired ")
    assert "it was of use until " in answer.sentences[0]


def test_a_job_of_a_broken_job_file_names_its_type_and_what_to_do() -> None:
    wait = Wait(cause=Cause.TYPE, key="mail.welcome", since=NOW)
    job = a_job(state=State.PARKED, wait=wait, due=NOW + LONGEST_PARKED)

    answer = explain(facts(job, before_it=2))

    assert answer.reason is Reason.UNLOADED
    assert answer.sentences[0] == (
        "The workers could not load the type mail.welcome, because a job file is broken. "
        "2 jobs of its line are before it."
    )
    assert "`broken job file`" in answer.sentences[-1]
    assert "wake" in explain(facts(job, stopped={"wake"})).sentences[-1].lower()


FULL = Limit(adaptive=Adaptive(floor=1, ceiling=9, target_seconds=1))


@pytest.mark.parametrize(
    ("adapted", "sentence"),
    [
        (Adapted(allowed=1), "has its only slot in use. The number adapts between 1 and 9."),
        (
            Adapted(allowed=0.7, falls=1, fell_at=NOW, why=Trouble.THROTTLED),
            "between 1 and 9, and was lowered last 2045-03-04 05:06:07Z (5m ago), because the downstream throttled.",
        ),
        (Adapted(allowed=1, falls=1, fell_at=NOW), "for a reason that only a newer version knows"),
    ],
)
def test_a_job_behind_an_adaptive_limit_learns_its_bounds_and_its_last_decrease(
    adapted: Adapted, sentence: str
) -> None:
    limit = LimitState(limit=FULL, held={"run": LATER + SECOND}, adapted=adapted)

    answer = explain(facts(a_job(state=State.PARKED, wait=A_WAIT), limit=limit))

    assert answer.reason is Reason.NO_SLOT
    assert sentence in answer.sentences[0]


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (Trouble.SLOW, "a run took longer"),
        (Trouble.THROTTLED, "throttled"),
        (Trouble.TIMEOUT, "timed out"),
        (Trouble.ERROR, "a run failed"),
    ],
)
def test_each_trouble_that_lowers_an_adaptive_limit_is_reported(trouble: Trouble, words: str) -> None:
    adapted = Adapted(allowed=1, falls=1, fell_at=NOW, why=trouble)
    limit = LimitState(limit=FULL, held={"run": LATER + SECOND}, adapted=adapted)

    assert words in explain(facts(a_job(state=State.PARKED, wait=A_WAIT), limit=limit)).sentences[0]


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (HoldCause.PAUSE, "paused"),
        (HoldCause.SUSPECT, "crashed"),
        (HoldCause.STRAY, "beyond its time"),
        (HoldCause.OUTAGE, "the store"),
        (HoldCause.TYPE, "broken"),
        (HoldCause.BREAKER, "breaker"),
        (HoldCause.UNDO, "supersedes"),
        (HoldCause.VERSION, "does not know its type"),
        (None, "another version of the code"),
    ],
)
def test_each_cause_of_a_hold_is_reported(cause: HoldCause | None, words: str) -> None:
    due = LATER + SECOND
    answer = explain(facts(a_job(due=due, holds=2, hold_cause=cause)))

    assert (answer.reason, answer.until) == (Reason.HELD, due)
    assert words in answer.sentences[0]


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"redrives": (Redrive(token="t", at=LATER + SECOND, by="ada"),)}, Reason.REDRIVEN, "It was redriven"),
        ({"state": State.RETRYING, "releases": 1}, Reason.RELEASED, "other transactions conflicted with it"),
        ({"state": State.RETRYING}, Reason.RELEASED, "the store did not answer its worker"),
        ({"claimed_at": NOW, "hops": 1}, Reason.HANDLER_DELAY, "Its handler asked to run again"),
        ({}, Reason.DELAYED, "It was submitted to run"),
    ],
)
def test_a_job_that_is_not_due_says_who_chose_its_time(changes: dict[str, Any], reason: Reason, words: str) -> None:
    due = LATER + SECOND
    answer = explain(facts(a_job(due=due, **changes)))

    assert (answer.reason, answer.until) == (reason, due)
    assert words in answer.sentences[0]


def test_a_job_behind_a_rate_learns_when_the_next_one_starts() -> None:
    limit = Limit(rate=Rate(count=2, period=timedelta(minutes=1)))
    state = LimitState(limit=limit, held={}, promised=LATER + 40 * SECOND)

    answer = explain(facts(a_job(state=State.PARKED, wait=A_WAIT), limit=state))

    assert answer.reason is Reason.NO_RATE
    assert "lets 2 in 60 s start, and the next one 2045-03-04 05:11:47Z (in 40s)." in answer.sentences[0]


def test_a_job_behind_a_shared_limit_of_its_lane_says_so() -> None:
    line = Line.for_limit('["limit:payments", "", {"lane": "bulk"}]')
    job = a_job(state=State.PARKED, wait=Wait(cause=line.cause, key=line.key, since=NOW))

    answer = explain(facts(job, limit=LimitState(limit=Limit(concurrency=1), held={"r1": LATER + SECOND}, marked=True)))

    assert answer.sentences[0] == f"The shared limit payments of lane bulk {line.key} has its only slot in use."


def test_a_job_above_the_cap_of_its_tenant_says_so() -> None:
    line = Line.for_cap("a", "bulk")
    limit = LimitState(limit=Limit(concurrency=2), held={"r1": LATER + SECOND, "r2": LATER + SECOND}, marked=True)
    job = a_job(state=State.PARKED, wait=Wait(cause=line.cause, key=line.key, since=NOW))

    answer = explain(facts(job, limit=limit, before_it=3))

    assert answer.reason is Reason.NO_SLOT
    assert answer.sentences[0] == (
        "The cap of tenant a in lane bulk has all its 2 slots in use. 3 jobs of its line are before it."
    )
