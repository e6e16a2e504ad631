"""A job that a story makes up, in any state, to ask what the engine says of it."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.simulation.stories.stage import TENANT
from tests.simulation.world.task_scheduler import BEGINNING_MS
from tidemill.application.explain import explain
from tidemill.application.explanation import Facts
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.names import Lane

NOW: Final = datetime.fromtimestamp(BEGINNING_MS / 1000, tz=UTC)


def at(seconds: float) -> datetime:
    """So many seconds after the present."""
    return NOW + timedelta(seconds=seconds)


def job(state: State, **fields: Any) -> Job:
    known: dict[str, Any] = {
        "tenant": TENANT,
        "id": "job",
        "type": "sim.effect",
        "lane": Lane.DEFAULT,
        "payload": "{}",
        "body_hash": "hash",
        "trace": "trace",
        "generation": 3,
        "attempt": 1,
        "created_at": at(-7_200),
    }
    return Job(**{**known, "state": state, **fields})


def explained(told: Job, **facts: Any) -> object:
    answer = explain(Facts(job=told, now=NOW, **facts))
    return [answer.reason.name, *answer.sentences, *([answer.until] if answer.until else [])]
