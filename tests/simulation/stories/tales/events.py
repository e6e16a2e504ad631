"""Events, their consumers, and replays."""

from datetime import datetime, timedelta
from typing import Any

from tests.simulation.stories.stage import TENANT, Stage
from tidemill import composition
from tidemill.application.replay import Progress, Replay
from tidemill.domain.submission import Submission
from tidemill.domain.time_constants import EPOCH, MILLISECOND
from tidemill.fan_out.replay import ReplayRequest
from tidemill.names import REPLAY_TENANT, REPLAY_TYPE

_EVENT = "sim.happened"


def an_event_that_is_published_twice(stage: Stage) -> None:
    event = {"type": _EVENT, "data": {"count": 1, "seconds": 1}}
    stage.post("/events", event, key="one")
    stage.post("/events", event, key="one")
    stage.post("/events", event | {"data": {"count": 2}}, key="one")
    stage.passes(5)


def an_event_that_is_refused(stage: Stage) -> None:
    stage.post("/events", {"type": "sim.unheard-of", "data": {}})
    stage.post("/events", {"type": _EVENT, "data": {"count": "x"}})
    stage.post("/events", {"type": _EVENT, "version": 2, "data": {}})
    stage.post("/events", {"type": _EVENT, "data": [], "other": 1})


def an_event_of_a_job(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.announces", "payload": {"count": 3}, "group": "g"}, key="one")
    stage.passes(2.5)


def _now(stage: Stage, *, hours: int = 0) -> datetime:
    return EPOCH + stage.world.scheduler.now_ms * MILLISECOND + timedelta(hours=hours)


def _replay(stage: Stage, what: str, **more: Any) -> None:
    until = _now(stage, hours=1)
    options: dict[str, Any] = {"version": None, "tenant": TENANT, "since": until - timedelta(hours=2), "until": until}
    options |= {"consumer": "sim.hears-some", "event": _EVENT} | more
    asked = Replay(**options)
    saved: list[Any] = []

    def act() -> Any:
        replayer = composition.parts().replayer(tenant=asked.tenant, rate=20, read_units=100)
        end = replayer.run(
            asked,
            Progress(),
            time_left=lambda: timedelta(seconds=60),
            save=lambda each: saved.append(each.as_json()),
        )
        return {"end": end.as_json(), "complete": end.complete, "saved": saved}

    stage.operate(what, act)


def a_replay_to_one_consumer(stage: Stage) -> None:
    """Of three events: one that its filter holds back, one that it has had, and one without a consumer yet."""
    stage.post("/events", {"type": _EVENT, "data": {"count": 2, "seconds": 30}, "group": "g"}, key="had")
    stage.post("/events", {"type": _EVENT, "data": {"count": 1, "seconds": 30}}, key="not for it")
    stage.passes(4)
    stage.post("/events", {"type": _EVENT, "data": {"count": 0}}, key="new")
    _replay(stage, "looks which events to replay", dry_run=True)
    _replay(stage, "replays only what it missed", missed=True)
    _replay(stage, "replays")


def a_replay_that_is_repeated(stage: Stage) -> None:
    stage.post("/events", {"type": _EVENT, "data": {"count": 2}}, key="event")
    stage.passes(2.2)
    _replay(stage, "replays in another replay, to all tenants", name="more", tenant=None)
    _replay(stage, "replays it again", name="more")
    _replay(stage, "replays to a type that consumes none", consumer="sim.effect")
    _replay(stage, "replays another version", version=2)


def a_replay_by_its_job(stage: Stage) -> None:
    """As the command submits it."""
    stage.post("/events", {"type": _EVENT, "data": {"count": 3, "seconds": 30}}, key="event")
    request = ReplayRequest(consumer="sim.hears", event=_EVENT, since=_now(stage), until=_now(stage, hours=1), rate=20)
    submission = Submission(type=REPLAY_TYPE, payload=request.model_dump(mode="json"))
    stage.passes(2.2)
    stage.operate(
        "replays", lambda: composition.parts().submit(submission, tenant=REPLAY_TENANT, trace="pia").job.state
    )
    stage.passes(4)
