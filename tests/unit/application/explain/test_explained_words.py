"""The whole answer of explain for jobs that are neither parked nor held: each sentence, and the time that it names."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import A_BURST, A_WAIT, NOW, SECOND, TENANT, a_job, an_error
from tidemill.application.dispatch.owed import Kind, Owed, Work
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Facts, GroupHead, LaneDepth, Reason
from tidemill.domain.job import DeathReason, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.signals import Awaited
from tidemill.domain.waiting.waiting import Cause, Line, Wait
from tidemill.names import BATCH_TYPE, FLOW_TYPE, Lane

LATER = NOW + timedelta(minutes=5)
DUE = LATER + timedelta(hours=1)
AGO = "2045-03-04 05:06:07Z (5m ago)"
JUST = "2045-03-04 05:11:07Z (0s ago)"
AHEAD = "2045-03-04 06:11:07Z (in 1h)"
RECONCILE = (
    "Reconcile sends it again when it is overdue by its limit; "
    "`tidemill reconcile --overdue-by 1` does so after a minute."
)
STATUS = "`tidemill status` shows the command."
NO_WAKE = f"Wake is not called, because its schedule is not enabled. {STATUS}"
NO_WORK = f"The workers of this lane are not called, because their event source mapping is not enabled. {STATUS}"
NO_PUBLISH = f"Publish is not called, because its event source mapping is not enabled, so no message is sent. {STATUS}"
EARLY = "Wake puts it on its lane up to five minutes before."


def owed(kind: Kind, **changes: Any) -> Owed:
    work = Owed(
        work=Work(kind=kind, tenant="t", name="n"),
        since=NOW,
        next_try=DUE,
        tries=2,
        error="the table was too busy",
        resent=False,
        version="v",
        failures=1,
    )
    return replace(work, **changes)


OWED = f"Publish could not do this at once, {AGO}: the table was too busy. Wake tries it again {AHEAD}."


@pytest.mark.parametrize(
    ("changes", "known", "sentences"),
    [
        (
            {"due": DUE, "claimed_at": NOW, "attempt": 2},
            {},
            (f"A worker has run it since {AGO}, as attempt 2. Its lease ends {AHEAD}.",),
        ),
        (
            {"due": LATER, "claimed_at": NOW, "attempt": 3},
            {},
            (
                f"The lease of attempt 3 ended {JUST}, so its worker is presumed dead.",
                f"The message that started it returns to the lane when its visibility timeout ends. {RECONCILE}",
            ),
        ),
        (
            {"due": None, "claimed_at": NOW, "attempt": 1},
            {"stopped": {"work"}},
            ("The lease of attempt 1 ended at an unknown time, so its worker is presumed dead.", NO_WORK),
        ),
        (
            {"due": LATER, "claimed_at": NOW, "attempt": 1},
            {"stopped": {"publish", "wake"}},
            (
                f"The lease of attempt 1 ended {JUST}, so its worker is presumed dead.",
                f"The message that started it returns to the lane when its visibility timeout ends. {RECONCILE}",
            ),
        ),
    ],
)
def test_a_run_has_a_worker_until_its_lease_ends(
    changes: dict[str, Any], known: dict[str, Any], sentences: tuple[str, ...]
) -> None:
    answer = explain(replace(Facts(job=a_job(state=State.RUNNING, **changes), now=LATER), **known))

    alive = changes["due"] == DUE
    assert (answer.reason, answer.until) == ((Reason.RUNNING, DUE) if alive else (Reason.LEASE_OVER, None))
    assert answer.sentences == sentences


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({}, f"It died {AGO}: no reason is known."),
        ({"death": DeathReason.PERMANENT, "group": "g"}, f"It died {AGO}: {DeathReason.PERMANENT}."),
        ({"death": DeathReason.PERMANENT, "blocks": True}, f"It died {AGO}: {DeathReason.PERMANENT}."),
        (
            {"death": DeathReason.PERMANENT, "group": "g", "blocks": True},
            f"It died {AGO}: {DeathReason.PERMANENT}. It blocks its group g until it is redriven or cancelled.",
        ),
    ],
)
def test_a_dead_job_says_whether_it_blocks_its_group(changes: dict[str, Any], first: str) -> None:
    # Its cancel, its deadline and its nudges do not matter any more.
    past = {"cancel_requested_at": NOW, "deadline": DUE, "nudges": 1, "nudged_at": NOW}
    job = a_job(id="a b", state=State.DEAD, due=None, finished_at=NOW, **past, **changes)

    answer = explain(Facts(job=job, now=LATER))

    assert (answer.reason, answer.until) == (Reason.DEAD, None)
    assert answer.sentences == (first, "`tidemill redrive 'a b'` gives it a fresh set of attempts.")


PAUSED = Wait(cause=Cause.PAUSE, key="lane=bulk", since=NOW)
LOADED = Wait(cause=Cause.TYPE, key="mail", since=NOW)
PROBED = Wait(cause=Cause.BREAKER, key="pay", since=NOW)
CAPPED = Line.for_cap("a", "bulk")
LIMITED = Wait(cause=Cause.LIMIT, key=CAPPED.key, since=NOW)
HELD = {"holds": 2, "hold_cause": HoldCause.BREAKER}
FAILED = {"errors": (an_error(attempt=1), an_error(attempt=2, next_due=DUE))}
REDRIVEN = {"redrives": (Redrive(token="t", at=NOW, by="ada"), Redrive(token="u", at=DUE, by="ada"))}
DEBOUNCED = (
    f"It is debounced, and runs {AHEAD}. "
    "A submission with the debounce key ada moves it on, until 2045-03-04 07:06:07Z (in 1h) at the latest."
)
SUBMITTED = f"It was submitted to run {AHEAD}."


@pytest.mark.parametrize(
    ("changes", "reason", "text"),
    [
        ({"burst": A_BURST, "run_at": DUE, **HELD}, Reason.DELAYED, DEBOUNCED),
        ({"burst": A_BURST, "run_at": NOW}, Reason.DELAYED, SUBMITTED),
        ({"burst": None, "run_at": DUE}, Reason.DELAYED, SUBMITTED),
        (
            {"wait": LIMITED, "holds": 1, "hold_cause": HoldCause.LIMIT, **REDRIVEN},
            Reason.TURN,
            f"The {CAPPED} lets it start {AHEAD}.",
        ),
        (
            {"holds": 1, "hold_cause": HoldCause.LIMIT},
            Reason.TURN,
            f"The limit of its type lets it start {AHEAD}.",
        ),
        ({"hold_cause": HoldCause.LIMIT}, Reason.DELAYED, SUBMITTED),
        (
            {**HELD, **REDRIVEN},
            Reason.HELD,
            f"It was held back until {AHEAD}, 2 times so far: the breaker of its downstream was open.",
        ),
        (
            {"holds": 1, "hold_cause": HoldCause.PAUSE},
            Reason.HELD,
            f"It was held back until {AHEAD}, once so far: an operator had paused it.",
        ),
        ({**REDRIVEN, **FAILED}, Reason.REDRIVEN, f"It was redriven, to run {AHEAD}."),
        (
            FAILED,
            Reason.BACKOFF,
            f"Attempt 2 failed with ValueError. The next one may begin {AHEAD}.",
        ),
        ({"redrives": REDRIVEN["redrives"][:1]}, Reason.DELAYED, SUBMITTED),
        ({"errors": FAILED["errors"][:1]}, Reason.DELAYED, SUBMITTED),
        (
            {"claimed_at": NOW, "hops": 1},
            Reason.HANDLER_DELAY,
            f"Its handler asked to run again {AHEAD} (a snooze or a continuation).",
        ),
        # A follow-up has the hops of its parent, and no run so far.
        ({"hops": 1}, Reason.DELAYED, SUBMITTED),
        ({"claimed_at": NOW}, Reason.DELAYED, SUBMITTED),
    ],
)
@pytest.mark.parametrize("state", [State.QUEUED, State.SCHEDULED])
def test_a_job_whose_time_has_not_come_says_who_chose_it(
    state: State, changes: dict[str, Any], reason: Reason, text: str
) -> None:
    job = a_job(state=state, due=DUE, **changes)

    answer = explain(Facts(job=job, now=LATER))

    assert (answer.reason, answer.until) == (reason, DUE)
    assert answer.sentences == ((text, EARLY) if state is State.SCHEDULED else (text,))


@pytest.mark.parametrize(
    ("changes", "reason", "text"),
    [
        ({"wait": PAUSED, **HELD}, Reason.RESUMED, f"The pause lane=bulk has ended, and it starts {AHEAD}."),
        ({"wait": LOADED, **FAILED}, Reason.LOADED, f"Its type mail is loaded again, and it starts {AHEAD}."),
        ({"wait": PROBED}, Reason.BREAKER_RELEASED, f"The breaker pay released it, and it starts {AHEAD}."),
    ],
)
def test_a_released_job_says_what_released_it(changes: dict[str, Any], reason: Reason, text: str) -> None:
    answer = explain(Facts(job=a_job(due=DUE, **changes), now=LATER))

    assert (answer.reason, answer.sentences, answer.until) == (reason, (text,), DUE)


@pytest.mark.parametrize(
    ("state", "stopped", "via"),
    [
        (State.QUEUED, {"wake"}, ()),
        (State.SCHEDULED, {"publish", "work"}, (EARLY,)),
        (State.SCHEDULED, {"wake"}, (NO_WAKE,)),
    ],
)
def test_only_a_scheduled_job_needs_wake(state: State, stopped: set[str], via: tuple[str, ...]) -> None:
    answer = explain(Facts(job=a_job(state=state, due=DUE), now=LATER, stopped=frozenset(stopped)))

    assert answer.sentences == (SUBMITTED, *via)


@pytest.mark.parametrize(
    ("stopped", "second"),
    [({"wake"}, NO_WAKE), ({"publish", "work"}, f"Wake runs each minute. {RECONCILE}")],
)
def test_a_job_that_wake_has_not_queued_says_when_its_time_came(stopped: set[str], second: str) -> None:
    answer = explain(Facts(job=a_job(state=State.SCHEDULED, due=NOW), now=LATER, stopped=frozenset(stopped)))

    first = f"Its time came {AGO}, and wake has not queued it yet."
    assert (answer.reason, answer.sentences, answer.until) == (Reason.WAKE_LATE, (first, second), None)


def head(**changes: Any) -> GroupHead:
    job = a_job(**{"id": "head", "tenant": "t", "group": "g", "sequence": 4, **changes})
    return GroupHead(job_id=job.id, job=job)


MOVES = "The group g moves on as soon as publish reads that from the stream."
LEFT = "Reconcile also moves groups on that were left behind."
GONE = f"Job head at the head of group g has ended. {MOVES}"
BLOCKS = (
    f"The dead job head blocks the group g: {DeathReason.PERMANENT}.",
    "`tidemill redrive head` runs it again, and `tidemill cancel head --tenant t` gives it up.",
)


def behind(state: State, places: str) -> tuple[str, ...]:
    return (
        f"Job head is at the head of the group g, and is {state}. Jobs of a group run one at a time.",
        f"It is {places} behind the head. `tidemill explain head` says why that one has not ended.",
    )


@pytest.mark.parametrize(
    ("known", "reason", "sentences"),
    [
        ({}, Reason.GROUP_TURN, (MOVES, LEFT)),
        ({"stopped": {"publish"}}, Reason.GROUP_TURN, (MOVES, NO_PUBLISH)),
        ({"stopped": {"wake", "work"}}, Reason.GROUP_TURN, (MOVES, LEFT)),
        ({"stopped": {"publish"}, "owed": owed(Kind.ADVANCE)}, Reason.GROUP_TURN, (MOVES, OWED)),
        ({"owed": owed(Kind.ADVANCE, resent=True)}, Reason.GROUP_TURN, (MOVES, LEFT)),
        ({"head": GroupHead(job_id=None, job=None)}, Reason.GROUP_TURN, (MOVES, LEFT)),
        ({"head": GroupHead(job_id="head", job=None)}, Reason.GROUP_TURN, (GONE, LEFT)),
        ({"head": head(state=State.SUCCEEDED)}, Reason.GROUP_TURN, (GONE, LEFT)),
        ({"head": head(state=State.SUCCEEDED, blocks=True)}, Reason.GROUP_TURN, (GONE, LEFT)),
        ({"head": head(state=State.DEAD)}, Reason.GROUP_TURN, (GONE, LEFT)),
        (
            {"head": head(state=State.DEAD, blocks=True, death=DeathReason.PERMANENT)},
            Reason.BLOCKED,
            BLOCKS,
        ),
        ({"head": head(state=State.RUNNING)}, Reason.BEHIND_HEAD, behind(State.RUNNING, "3 places")),
        ({"head": head(state=State.RUNNING, blocks=True)}, Reason.BEHIND_HEAD, behind(State.RUNNING, "3 places")),
        ({"head": head(sequence=6)}, Reason.BEHIND_HEAD, behind(State.QUEUED, "1 place")),
        ({"head": head(sequence=None)}, Reason.BEHIND_HEAD, behind(State.QUEUED, "7 places")),
    ],
)
def test_a_job_in_a_group_waits_for_its_head(known: dict[str, Any], reason: Reason, sentences: tuple[str, ...]) -> None:
    job = a_job(state=State.WAITING, group="g", sequence=7, due=None)

    answer = explain(replace(Facts(job=job, now=LATER), **known))

    assert (answer.reason, answer.sentences, answer.until) == (reason, sentences, None)


AWAITED = Awaited(cause=Cause.SIGNAL, name="approval", since=NOW, until=DUE)
WAITS = f"It waits: signal approval since {AGO}, until {AHEAD}."
BY_SIGNAL = f"`tidemill signal j approval JSON --tenant {TENANT}` lets it run at once. Without it, it runs {AHEAD}."


@pytest.mark.parametrize(
    ("changes", "stopped", "sentences"),
    [
        ({"state": State.PARKED, "wait": AWAITED.wait, "awaited": AWAITED}, set(), (WAITS, BY_SIGNAL)),
        ({"state": State.PARKED, "wait": AWAITED.wait, "awaited": AWAITED}, {"wake"}, (WAITS, NO_WAKE)),
        ({"state": State.PARKED, "wait": AWAITED.wait, "awaited": AWAITED}, {"publish"}, (WAITS, BY_SIGNAL)),
        ({"state": State.QUEUED, "awaited": AWAITED}, set(), (WAITS, BY_SIGNAL)),
        # It was paused meanwhile, and released before the end of its wait.
        ({"state": State.QUEUED, "awaited": AWAITED, "wait": PAUSED}, set(), (WAITS, BY_SIGNAL)),
        ({"state": State.PARKED, "wait": AWAITED.wait}, set(), ("Another version of the code made it wait.",)),
    ],
)
def test_a_job_that_waits_for_a_signal_names_it(
    changes: dict[str, Any], stopped: set[str], sentences: tuple[str, ...]
) -> None:
    answer = explain(Facts(job=a_job(id="j", due=DUE, **changes), now=LATER, stopped=frozenset(stopped)))

    assert (answer.reason, answer.sentences, answer.until) == (Reason.AWAITED, sentences, DUE)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        # Wake queued it at the end of its wait, or a run after that was held back.
        ({"awaited": replace(AWAITED, until=LATER), "due": LATER}, Reason.READY),
        ({"awaited": AWAITED, "due": DUE, "holds": 1}, Reason.HELD),
        # A pause released it after the end of its wait.
        ({"awaited": AWAITED, "due": DUE + SECOND, "wait": PAUSED}, Reason.RESUMED),
        ({"awaited": AWAITED, "due": DUE, "wait": A_WAIT}, Reason.DELAYED),
        ({"awaited": AWAITED, "due": DUE + SECOND}, Reason.DELAYED),
        ({"awaited": AWAITED, "due": LATER}, Reason.READY),
        ({"awaited": AWAITED, "due": DUE, "state": State.SCHEDULED}, Reason.DELAYED),
        ({"awaited": AWAITED, "due": DUE, "state": State.PARKED, "wait": PAUSED}, Reason.RESUMED),
        ({"awaited": AWAITED, "due": DUE, "state": State.PARKED}, Reason.LINE_MOVES),
    ],
)
def test_a_wait_that_has_ended_explains_nothing(changes: dict[str, Any], reason: Reason) -> None:
    assert explain(Facts(job=a_job(**changes), now=LATER)).reason is reason


@pytest.mark.parametrize(("job_type", "stopped"), [(BATCH_TYPE, set()), (BATCH_TYPE, {"wake"}), (FLOW_TYPE, {"wake"})])
def test_a_batch_or_flow_looks_again_by_itself(job_type: str, stopped: set[str]) -> None:
    job = a_job(type=job_type, state=State.PARKED, wait=AWAITED.wait, awaited=AWAITED, due=DUE)

    first, *others = explain(Facts(job=job, now=LATER, stopped=frozenset(stopped))).sentences

    ends = {
        BATCH_TYPE: "jobs again {}, or as soon as it is closed.",
        FLOW_TYPE: "nodes again {}, or as soon as the last",
    }
    assert first.startswith(f"It looks at its {ends[job_type].format(AHEAD)}")
    assert others[: len(stopped)] == [NO_WAKE] * len(stopped)
    assert NO_WAKE not in others[len(stopped) :]


EMPTY = LaneDepth(waiting=0, delayed=0, in_flight=0)
READY = f"It has been ready since {AGO}"
NO_MESSAGE = f"{READY}, and the lane bulk has no message: publish has not sent it yet, or it was lost."
UNSEEN = f"If its message was lost, it cannot be seen among them. {RECONCILE}"


def on_lane(waiting: int, delayed: int, in_flight: int) -> str:
    messages = f"{waiting} waiting, {delayed} delayed and {in_flight} in flight"
    return f"{READY}, and waits for a worker of the lane bulk: its messages are {messages}."


@pytest.mark.parametrize(
    ("known", "reason", "sentences"),
    [
        (
            {"owed": owed(Kind.DISPATCH), "lane": EMPTY, "stopped": {"publish", "work"}},
            Reason.OWED,
            (f"{READY}. {OWED}",),
        ),
        ({"owed": owed(Kind.DISPATCH, resent=True), "lane": EMPTY}, Reason.NO_MESSAGE, (NO_MESSAGE, RECONCILE)),
        ({"lane": EMPTY, "stopped": {"work", "wake"}}, Reason.NO_MESSAGE, (NO_MESSAGE, RECONCILE)),
        ({"lane": EMPTY, "stopped": {"publish"}}, Reason.PUBLISH_STOPPED, (f"{READY}. {NO_PUBLISH}",)),
        ({"stopped": {"work"}}, Reason.LANE_STOPPED, (f"{READY}. {NO_WORK}",)),
        ({"stopped": {"publish"}}, Reason.READY, (f"{READY}. Its lane could not be read.",)),
        ({"lane": replace(EMPTY, waiting=1)}, Reason.ON_LANE, (on_lane(1, 0, 0), UNSEEN)),
        ({"lane": replace(EMPTY, delayed=2)}, Reason.ON_LANE, (on_lane(0, 2, 0), UNSEEN)),
        ({"lane": replace(EMPTY, in_flight=3)}, Reason.ON_LANE, (on_lane(0, 0, 3), UNSEEN)),
        ({"lane": replace(EMPTY, waiting=1, delayed=1)}, Reason.ON_LANE, (on_lane(1, 1, 0), UNSEEN)),
        ({"lane": replace(EMPTY, waiting=1, in_flight=1)}, Reason.ON_LANE, (on_lane(1, 0, 1), UNSEEN)),
        (
            {"lane": replace(EMPTY, waiting=1), "stopped": {"publish"}},
            Reason.ON_LANE,
            (on_lane(1, 0, 0), UNSEEN, NO_PUBLISH),
        ),
        (
            {"lane": replace(EMPTY, waiting=1), "stopped": {"wake"}},
            Reason.ON_LANE,
            (on_lane(1, 0, 0), UNSEEN),
        ),
    ],
)
@pytest.mark.parametrize("state", [State.QUEUED, State.RETRYING])
def test_a_ready_job_waits_for_its_message_or_a_worker(
    state: State, known: dict[str, Any], reason: Reason, sentences: tuple[str, ...]
) -> None:
    job = a_job(state=state, due=NOW, lane=Lane.BULK)

    answer = explain(replace(Facts(job=job, now=LATER), **known))

    assert (answer.reason, answer.sentences, answer.until) == (reason, sentences, None)
