"""What explain says of a job that has ended, and what it adds for one that has not."""

import json
import shlex
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import A_BURST, AN_UNDO, NOW, TENANT, a_job, with_changes
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Facts, Reason
from tidemill.application.submission.job_ids import follow_up_id
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.limits.adaptive_limit import Adaptive
from tidemill.domain.limits.limit_state import LimitState
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.overrides import Override, override_of
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Awaited, Signal
from tidemill.domain.waiting.waiting import Cause, Wait
from tidemill.names import BATCH_TYPE, EVENT_TYPE, FLOW_TYPE

LATER = NOW + timedelta(minutes=5)
DUE = LATER + timedelta(hours=1)
AGO = "2045-03-04 05:06:07Z (5m ago)"
AHEAD = "2045-03-04 06:11:07Z (in 1h)"
EVENT = a_job(id="e", tenant="a b")
MARKED = FlowPlace(id="flow 1", node="mail", mark=Mark.SKIPPED)
UNDONE = Undone(job_id="u", at=NOW, by="ada")


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({"result": '{"consumers": ["a"]}'}, []),
        (
            {"type": EVENT_TYPE, "result": json.dumps({"consumers": ["mail", "bill"]})},
            [f"It reached mail in job {follow_up_id(EVENT, 0)}, bill in job {follow_up_id(EVENT, 1)}."],
        ),
        ({"type": EVENT_TYPE, "result": '{"consumers": []}'}, ["No consumer takes it."]),
        ({"type": EVENT_TYPE}, []),
        ({"type": BATCH_TYPE, "result": '{"succeeded": 3, "dead": 1}'}, ["Its jobs: 3 succeeded, 1 dead."]),
        ({"type": BATCH_TYPE, "result": "{}"}, ["It has no jobs."]),
        ({"type": BATCH_TYPE}, []),
        ({"type": FLOW_TYPE, "result": '{"succeeded": 2}'}, ["Its nodes: 2 succeeded."]),
        ({"type": FLOW_TYPE}, []),
        ({"flow": MARKED}, ["The node mail has no job: `tidemill flow 'flow 1' --tenant 'a b'` shows why."]),
        ({"flow": replace(MARKED, mark=None)}, []),
        ({"undo": AN_UNDO}, ["`tidemill undo e --tenant 'a b'` undoes it."]),
        ({"undo": AN_UNDO, "undone": UNDONE}, [f"It was undone by job u, submitted {AGO}."]),
    ],
)
@pytest.mark.parametrize(("state", "ended"), [(State.SUCCEEDED, "succeeded"), (State.CANCELLED, "was cancelled")])
def test_an_ended_job_says_what_it_has_left(
    state: State, ended: str, changes: dict[str, Any], sentences: list[str]
) -> None:
    job = with_changes(EVENT, state=state, finished_at=NOW, **changes)

    answer = explain(Facts(job=job, now=LATER))

    assert (answer.reason, answer.until) == (Reason.ENDED, None)
    assert answer.sentences == (f"It {ended} {AGO}.", *sentences)


def test_a_job_that_expired_says_only_that() -> None:
    past = {"cancel_requested_at": NOW, "deadline": DUE, "nudges": 1, "nudged_at": NOW, "undo": AN_UNDO}
    job = a_job(state=State.EXPIRED, finished_at=NOW, useful_until=NOW, **past)
    answer = explain(Facts(job=job, now=LATER))

    expired = f"It expired {AGO}: it was of use until {AGO}, and its next run had not begun by then."
    assert (answer.reason, answer.sentences, answer.until) == (Reason.ENDED, (expired,), None)


def test_the_command_for_an_ended_job_is_safe_in_a_shell() -> None:
    name = "$(touch owned)"
    job = a_job(id=name, type=name, state=State.SUCCEEDED, undo=AN_UNDO)

    (command,) = [each.split("`")[1] for each in explain(Facts(job=job, now=LATER)).sentences[1:]]

    assert shlex.split(command) == ["tidemill", "undo", name, "--tenant", TENANT]


def override(name: str, value: Any, *, until: datetime | None = None, reason: str = "") -> Override:
    found = override_of(Setting(name=name, value=value, at=NOW, by="ada", reason=reason, until=until))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("changes", "overrides", "sentences"),
    [
        ({}, [], []),
        (
            {"cancel_requested_at": NOW},
            [],
            [f"A cancel was requested {AGO}: the next worker ends it, and does not run it."],
        ),
        (
            {"nudges": 1, "nudged_at": NOW},
            [],
            [f"Reconcile has sent it again once without a claim, the last time {AGO}."],
        ),
        (
            {"nudges": 2, "nudged_at": NOW},
            [],
            [f"Reconcile has sent it again 2 times without a claim, the last time {AGO}."],
        ),
        # The nudge belongs to a former generation.
        ({"nudged_at": NOW}, [], []),
        ({"deadline": DUE}, [], [f"If no run begins by {AHEAD}, it dies."]),
        ({"useful_until": DUE}, [], [f"A run that would begin after {AHEAD} comes too late: it expires then."]),
        (
            {},
            [override("types.test.job.max_attempts", 3), override("limits.pay.concurrency_per_key", 2, until=DUE)],
            [
                f"max_attempts of its type is 3 by ada since {AGO}.",
                f"concurrency_per_key of the shared limit pay is 2 by ada since {AGO}, until {AHEAD}.",
            ],
        ),
        (
            {},
            [override("types.test.job.max_attempts", 3, until=DUE, reason="an outage")],
            [f"max_attempts of its type is 3 by ada since {AGO}, until {AHEAD}: an outage."],
        ),
    ],
)
def test_what_else_concerns_a_live_job_is_added(
    changes: dict[str, Any], overrides: list[Override], sentences: list[str]
) -> None:
    answer = explain(Facts(job=a_job(due=DUE, **changes), now=LATER, overrides=overrides))

    assert answer.sentences == (f"It was submitted to run {AHEAD}.", *sentences)
    assert answer.until == DUE


@pytest.mark.parametrize(
    ("due", "ends"),
    [
        (DUE, "the run ends at its next checkpoint"),
        # Its worker is presumed dead.
        (NOW, "the next worker ends it, and does not run it"),
    ],
)
def test_a_run_that_was_asked_to_end_says_what_ends_it(due: datetime, ends: str) -> None:
    job = a_job(state=State.RUNNING, claimed_at=NOW, due=due, cancel_requested_at=NOW)

    assert explain(Facts(job=job, now=LATER)).sentences[-1] == f"A cancel was requested {AGO}: {ends}."


OPEN = "The batch is open for further jobs; its owner closes it with `tidemill batch j --close`."
CLOSED = f"The batch was closed {AGO}."
NODES = "`tidemill flow j --tenant t` shows each node, and the parents for which it waits."


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({"type": BATCH_TYPE}, [OPEN]),
        ({"type": BATCH_TYPE, "checkpoint": "{}"}, [OPEN]),
        ({"type": BATCH_TYPE, "signals": (Signal(name="closed", data="true", at=NOW),)}, [CLOSED]),
        (
            {"type": BATCH_TYPE, "checkpoint": '{"counts": {"queued": 3, "dead": 1}}'},
            [OPEN, "Its jobs at its last look: 3 queued, 1 dead. `tidemill list --batch j --tenant t` lists them."],
        ),
        ({"type": FLOW_TYPE}, [NODES]),
        (
            {"type": FLOW_TYPE, "progress_done": 0, "progress_total": 2},
            [f"0 of its 2 nodes had ended at its last look. {NODES}"],
        ),
        (
            {"type": FLOW_TYPE, "signals": (Signal(name="cancelled", data="true", at=NOW),)},
            [f"The flow was cancelled {AGO}, and waits for its last nodes to end.", NODES],
        ),
        ({"checkpoint": '{"counts": {"queued": 3}}', "progress_done": 1, "progress_total": 2}, []),
    ],
)
def test_a_batch_or_flow_says_what_it_waits_for(changes: dict[str, Any], sentences: list[str]) -> None:
    wait = Awaited(cause=Cause.SIGNAL, name="look", since=NOW, until=DUE)
    job = a_job(id="j", tenant="t", state=State.PARKED, wait=wait.wait, awaited=wait, due=DUE, **changes)

    answer = explain(Facts(job=job, now=LATER))

    asked = [] if changes.get("type") else [answer.sentences[1]]
    assert [*answer.sentences[1:]] == [*asked, *sentences]


MOVED = f"Submissions have moved it: 2, the first {AGO}."
REPLACED = f"Submissions have replaced its payload: 3, the first {AGO}."


@pytest.mark.parametrize(
    ("changes", "same", "sentences"),
    [
        ({}, "the debounce key ada", []),
        ({"key": None}, "the same payload", []),
        ({"moves": 2, "first_moved_at": NOW}, "the debounce key ada", [MOVED]),
        ({"replacements": 3, "first_replaced_at": NOW}, "the debounce key ada", [REPLACED]),
        (
            {"moves": 2, "first_moved_at": NOW, "replacements": 3, "first_replaced_at": NOW},
            "the debounce key ada",
            [MOVED, REPLACED],
        ),
    ],
)
def test_a_debounced_job_says_what_its_submissions_did(
    changes: dict[str, Any], same: str, sentences: list[str]
) -> None:
    job = a_job(state=State.SCHEDULED, due=DUE, run_at=DUE, burst=replace(A_BURST, until=DUE, **changes))

    first = explain(Facts(job=job, now=LATER)).sentences[0]

    moves_on = f"A submission with {same} moves it on, until {AHEAD} at the latest."
    assert first == " ".join([f"It is debounced, and runs {AHEAD}.", moves_on, *sentences])


@pytest.mark.parametrize(("until", "shown"), [(LATER - timedelta(seconds=1), None), (LATER, None), (DUE, DUE)])
def test_a_time_that_has_passed_is_not_an_answer(until: datetime, shown: datetime | None) -> None:
    """A line that wake is late to release."""
    assert explain(Facts(job=a_job(state=State.PARKED, due=until), now=LATER)).until == shown


def test_a_claim_that_was_given_back_counts_more_than_an_earlier_release() -> None:
    wait = Wait(cause=Cause.PAUSE, key="lane=bulk", since=NOW)
    job = a_job(state=State.RETRYING, due=DUE, wait=wait, releases=1)
    assert explain(Facts(job=job, now=LATER)).reason is Reason.RELEASED


def test_an_adaptive_limit_that_has_not_adapted_so_far_says_its_bounds() -> None:
    limit = Limit(adaptive=Adaptive(floor=1, ceiling=2, target_seconds=1))
    use = LimitState(limit=limit, held={"a": DUE}, marked=True)

    first = explain(Facts(job=a_job(state=State.PARKED, due=DUE), now=LATER, limit=use)).sentences[0]

    assert first == "Its limit has its only slot in use. The number adapts between 1 and 2."
