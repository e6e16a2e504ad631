"""What `explain` and the history say of jobs in any state, of which few happen in a story."""

import json
from datetime import timedelta

from tests.simulation.stories.stage import TENANT, Stage
from tests.simulation.stories.told_job import at, explained, job
from tidemill.application.explanation import GroupHead, LaneDepth
from tidemill.application.job_story import story
from tidemill.application.owed import Kind, Owed, Work
from tidemill.domain.adaptive_limit import Adapted, Adaptive, Trouble
from tidemill.domain.breaker import Breaker, BreakerState
from tidemill.domain.burst import Burst
from tidemill.domain.flow_place import FlowPlace
from tidemill.domain.history import Transition, Why
from tidemill.domain.holds import HoldCause
from tidemill.domain.job import AttemptError, CancelRequest, DeathReason, Redrive
from tidemill.domain.limit_state import LimitState
from tidemill.domain.limits import Limit, Rate
from tidemill.domain.setting import Setting
from tidemill.domain.signals import Awaited, Signal
from tidemill.domain.skipped_work import Backfilled, Skipped
from tidemill.domain.states import State
from tidemill.domain.steps import Step
from tidemill.domain.undo import Undo, Undone
from tidemill.domain.waiting import Cause, Line, Wait
from tidemill.names import BATCH_TYPE, EVENT_TYPE, FLOW_TYPE, Lane

_STOPPED = frozenset({"publish", "wake", "work"})
_LINE = Line.for_pause("type=sim.effect")


def explained_times_of_jobs(stage: Stage) -> None:
    """Why each has the time that it has."""
    ahead = {"due": at(90)}
    error = AttemptError(attempt=2, at=at(-3), error_class="BrokenError", message="no", retryable=True, next_due=at(90))

    def wait(cause: Cause) -> Wait:
        return Wait(cause=cause, key="key", since=at(-9))

    def act() -> object:
        held = [explained(job(State.QUEUED, **ahead, holds=2, hold_cause=cause)) for cause in (*HoldCause, None)]
        waits = [
            explained(job(State.QUEUED, **ahead, wait=wait(cause)))
            for cause in Cause
            if cause not in ("signal", "input")
        ]
        return {
            "held": held,
            "released": waits,
            "limited": explained(
                job(State.QUEUED, **ahead, holds=1, hold_cause=HoldCause.LIMIT, wait=wait(Cause.LIMIT))
            ),
            "redriven": explained(job(State.QUEUED, **ahead, redrives=(Redrive(token="t", at=at(90), by="eve"),))),
            "failed": explained(job(State.RETRYING, **ahead, errors=(error,))),
            "conflict": explained(job(State.RETRYING, **ahead, releases=1)),
            "no answer": explained(job(State.RETRYING, **ahead)),
            "snoozed": explained(job(State.QUEUED, **ahead, hops=1, claimed_at=at(-5))),
            "late wake": explained(job(State.SCHEDULED, due=at(-200)), stopped=_STOPPED),
            "lease over": explained(job(State.RUNNING, due=at(0), claimed_at=at(-50))),
            "no worker": explained(job(State.RUNNING, due=at(-1), claimed_at=at(-50)), stopped=_STOPPED),
        }

    stage.operate("asks", act)


def explained_lines_of_jobs(stage: Stage) -> None:
    def parked(cause: Cause, key: str = "key") -> dict[str, object]:
        return {"due": at(86_000), "wait": Wait(cause=cause, key=key, since=at(-9))}

    limited = job(State.PARKED, **parked(Cause.LIMIT, json.dumps(["sim.effect", "a", TENANT])))
    rate = Limit(rate=Rate(count=3, period=timedelta(seconds=30)))
    two = {"a": at(5), "b": at(1), "c": at(0)}

    def limit(number: Limit | None, **state: object) -> LimitState:
        return LimitState(limit=number, **state)  # type: ignore[arg-type]

    def adapted(why: Trouble | None) -> object:
        bounds = Limit(adaptive=Adaptive(floor=1, ceiling=9, target_seconds=2))
        state = limit(bounds, held=two, adapted=Adapted(allowed=2.0, falls=1, fell_at=at(-70), why=why))
        return explained(limited, limit=state, before_it=1)

    def act() -> object:
        return {
            "all slots": explained(limited, limit=limit(Limit(concurrency=2), held=two), before_it=0),
            "the only slot": explained(limited, limit=limit(Limit(concurrency=1), held={"a": at(5)}), before_it=2),
            "a slot is free": explained(limited, limit=limit(Limit(concurrency=3), held=two), before_it=0),
            "adapted": [adapted(why) for why in (*Trouble, None)],
            "rate": explained(limited, limit=limit(rate, arrival=at(40)), before_it=1),
            "promised": explained(limited, limit=limit(rate, promised=at(12))),
            "rate has room": explained(limited, limit=limit(rate, arrival=at(20)), stopped=_STOPPED),
            "unknown limit": explained(limited, limit=limit(None)),
            "no type": explained(job(State.PARKED, **parked(Cause.TYPE, "sim.effect")), before_it=3),
            "no type, no wake": explained(job(State.PARKED, **parked(Cause.TYPE, "sim.effect")), stopped=_STOPPED),
            "resumed": explained(job(State.PARKED, **parked(Cause.PAUSE, _LINE.key)), before_it=1, stopped=_STOPPED),
            "no wait": explained(job(State.PARKED, due=at(50))),
        }

    stage.operate("asks", act)


def explained_breakers_of_jobs(stage: Stage) -> None:
    waiting = job(State.PARKED, due=at(86_000), wait=Wait(cause=Cause.BREAKER, key="payments", since=at(-9)))

    def breaker(state: BreakerState, **fields: object) -> Breaker:
        return Breaker(name="payments", state=state, since=at(-70), **fields)  # type: ignore[arg-type]

    def forced(state: str, reason: str) -> Setting:
        return Setting(name="breakers.payments", value={"force": state}, at=at(-700), by="eve", reason=reason)

    def act() -> object:
        probe = (TENANT, "other")
        return {
            "none": explained(waiting, before_it=0),
            "closed": explained(waiting, breaker=breaker(BreakerState.CLOSED), stopped=_STOPPED),
            "open": explained(waiting, breaker=breaker(BreakerState.OPEN), before_it=1),
            "half open": explained(
                waiting,
                breaker=breaker(BreakerState.HALF_OPEN, probe=probe, probe_at=at(8), last_error="E: no"),
                stopped=_STOPPED,
            ),
            "forced": [
                explained(waiting, forced=forced(*each), before_it=2) for each in (("open", "why"), ("closed", ""))
            ],
        }

    stage.operate("asks", act)


def explained_groups_and_lanes_of_jobs(stage: Stage) -> None:
    waiting = job(State.WAITING, group="g", sequence=5)
    ready = job(State.QUEUED, due=at(-5))

    def head(state: State, **fields: object) -> GroupHead:
        return GroupHead(job_id="first", job=job(state, id="first", group="g", sequence=4, **fields))

    def owed(*, resent: bool) -> Owed:
        work = Work(kind=Kind.DISPATCH, tenant=TENANT, name="job")
        return Owed(work=work, since=at(-80), next_try=at(20), tries=1, error="E: no", resent=resent, version="v")

    def lane(*depth: int) -> LaneDepth:
        return LaneDepth(waiting=depth[0], delayed=depth[1], in_flight=depth[2])

    def act() -> object:
        return {
            "no head": explained(waiting),
            "empty head": explained(waiting, head=GroupHead(job_id=None, job=None), stopped=_STOPPED),
            "ended head": explained(waiting, head=head(State.SUCCEEDED), owed=owed(resent=False)),
            "head that died": explained(waiting, head=head(State.DEAD, death=DeathReason.CRASHED)),
            "blocking head": explained(waiting, head=head(State.DEAD, death=DeathReason.CRASHED, blocks=True)),
            "running head": explained(waiting, head=head(State.RUNNING)),
            "owed": explained(ready, owed=owed(resent=False), lane=lane(0, 0, 0)),
            "resent": explained(ready, owed=owed(resent=True), lane=lane(0, 0, 0)),
            "empty, stopped": explained(ready, lane=lane(0, 0, 0), stopped=_STOPPED),
            "stopped": explained(ready, lane=lane(0, 1, 0), stopped=_STOPPED),
            "publish stopped": explained(ready, lane=lane(0, 0, 2), stopped=frozenset({"publish"})),
            "waits": explained(ready, lane=lane(3, 4, 5)),
            "no lane": explained(ready),
        }

    stage.operate("asks", act)


def explained_ends_and_further_facts_of_jobs(stage: Stage) -> None:
    ended = {"finished_at": at(-90_000)}
    undo = Undo(type="sim.unbooks", lane=Lane.DEFAULT, payload="{}")
    skipped = (Skipped(name="receipt", type="sim.sends"), Skipped(name="report", type="sim.sends"))
    burst = Burst(name="n", until=at(400), sent_for=at(100), last="x", moves=2, first_moved_at=at(-30))
    closed = (Signal(name="closed", at=at(-20), data="null"), Signal(name="cancelled", at=at(-10), data="null"))
    awaited = Awaited(cause=Cause.INPUT, name="colour", since=at(-20), until=at(100))

    def act() -> object:
        batch = {"type": BATCH_TYPE, "awaited": awaited, "wait": awaited.wait, "due": at(100)}
        flow = {**batch, "type": FLOW_TYPE}
        return {
            "expired": explained(job(State.EXPIRED, **ended, useful_until=at(-91_000))),
            "cancelled": explained(job(State.CANCELLED, **ended)),
            "dead": explained(job(State.DEAD, **ended, group="g")),
            "undone": explained(
                job(State.SUCCEEDED, **ended, undo=undo, undone=Undone(job_id="u", at=at(-9), by="eve"))
            ),
            "undo": explained(job(State.SUCCEEDED, **ended, undo=undo)),
            "skipped": explained(
                job(
                    State.SUCCEEDED,
                    **ended,
                    skipped=skipped,
                    backfilled=(Backfilled(name="receipt", job_id="b", at=at(-8)),),
                )
            ),
            "event": explained(job(State.SUCCEEDED, **ended, type=EVENT_TYPE, result='{"consumers":["a","b"]}')),
            "event of none": explained(job(State.SUCCEEDED, **ended, type=EVENT_TYPE, result='{"consumers":[]}')),
            "batch": explained(job(State.SUCCEEDED, **ended, type=BATCH_TYPE, result='{"succeeded":2,"dead":1}')),
            "empty batch": explained(job(State.SUCCEEDED, **ended, type=BATCH_TYPE, result="{}")),
            "flow": explained(job(State.SUCCEEDED, **ended, type=FLOW_TYPE, result='{"succeeded":3}')),
            "open batch": explained(job(State.PARKED, **batch, checkpoint='{"counts":{"queued":4}}')),
            "closed batch": explained(job(State.PARKED, **batch, signals=closed[:1]), stopped=_STOPPED),
            "open flow": explained(job(State.PARKED, **flow, progress_done=1, progress_total=3)),
            "cancelled flow": explained(job(State.PARKED, **flow, signals=closed)),
            "input": explained(job(State.PARKED, due=at(100), awaited=awaited, wait=awaited.wait)),
            "near its end": explained(job(State.QUEUED, due=at(100), awaited=awaited)),
            "debounced": explained(job(State.QUEUED, due=at(100), run_at=at(100), burst=burst)),
            "nudged": explained(job(State.QUEUED, due=at(-100), nudges=2, nudged_at=at(-40), deadline=at(60))),
            "nudged once": explained(job(State.QUEUED, due=at(-100), nudges=1, useful_until=at(3_700))),
            "to be cancelled": explained(job(State.RUNNING, due=at(9), claimed_at=at(-9), cancel_requested_at=at(-2))),
        }

    stage.operate("asks", act)


def the_histories_of_jobs(stage: Stage) -> None:
    error = AttemptError(attempt=2, at=at(-100), error_class="E", message="no", retryable=False)

    def told(state: State = State.QUEUED, **fields: object) -> list[str]:
        return [f"{when:%M:%S} {what}" for when, what in story(job(state, **fields))]

    def entries(*causes: tuple[str, str], attempt: int | None = 2) -> tuple[Transition, ...]:
        return tuple(
            Transition(at=at(number - 100), state=state, cause=cause, attempt=attempt if state != "running" else None)
            for number, (state, cause) in enumerate(causes)
        )

    def act() -> object:
        burst = Burst(name="n", until=at(400), sent_for=at(100), last="x", moves=2, replacements=3)
        redrive = Redrive(token="t", at=at(-100), by="eve", death=DeathReason.CRASHED, reason="repaired", edited=True)
        wait = Wait(cause=Cause.PAUSE, key=_LINE.key, since=at(-100))
        held = [("queued", f"held: {cause}") for cause in (*HoldCause, "new")]
        plain = [("x", why) for why in Why if why not in (Why.MOVED, Why.REPLACED, Why.UNDONE)]
        cancel = CancelRequest(by="bob", reason="wrong")
        return {
            "each cause": told(history=entries(*plain), cancel=cancel),
            "moved": told(history=entries(("moved", Why.MOVED), ("moved", Why.REPLACED)), burst=burst),
            "held": told(history=entries(*held)),
            "without numbers": told(history=entries(("queued", "held: new"), attempt=None)),
            "redriven": told(history=entries(("queued", Why.EDITED)), redrives=(redrive,)),
            "failed": told(history=entries(("dead", "attempts used up")), errors=(error,), state=State.DEAD, attempt=2),
            "died": told(history=entries(("dead", "gave up"), ("x", "unknown")), state=State.DEAD),
            "parked": told(history=entries(("parked", Why.PAUSED)), wait=wait, state=State.PARKED),
            "waits": told(history=entries(("parked", "waits: colour"))),
            "signalled": told(history=entries(("queued", "signal colour"), attempt=None)),
            "undone": told(undone=Undone(job_id="u", at=at(-9), by="eve", reason="wrong"), state=State.SUCCEEDED),
            "asked to end": told(cancel_requested_at=at(-7), cancel=cancel, state=State.RUNNING),
            "without history": told(
                claimed_at=at(-60),
                ready_at=at(-90),
                errors=(error,),
                redrives=(redrive,),
                checkpoint_at=at(-40),
                progress_done=3,
                progress_total=9,
                steps=(Step(name="one", at=at(-45), attempt=1),),
                nudged_at=at(-30),
                wait=wait,
                finished_at=at(-20),
                open_runs=1,
            ),
            "dead without history": told(
                finished_at=at(-20), death=DeathReason.GAVE_UP, state=State.DEAD, checkpoint_at=at(-9)
            ),
            "of another": told(
                run_at=at(-3_600),
                group="g",
                sequence=4,
                batch="b",
                flow=FlowPlace(id="f", node="n"),
                parent="p",
                undoes="u",
                supersedes="s",
            ),
        }

    stage.operate("asks", act)
