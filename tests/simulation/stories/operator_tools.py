"""What operators do in a story, with the objects that the command line has."""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from tests.simulation.actors.operator_objects import configurator
from tests.simulation.deployment import JOBS_TABLE
from tests.simulation.stories.stage import TENANT, Stage
from tidemill import composition
from tidemill.application.explain.explain import explain
from tidemill.application.explain.job_story import story
from tidemill.aws import clients
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Cause
from tidemill.dynamodb.operations.attention_counts import AttentionCounts
from tidemill.operator.explain.job_facts import JobFacts
from tidemill.operator.status import held_lines
from tidemill.system import clock

#: The functions that may be stopped.
_STOPPED: Final = frozenset({"publish", "wake", "work"})


def set_setting(
    stage: Stage,
    name: str,
    value: Any,
    *,
    seconds: float | None = None,
    by: str = "eve",
    reason: str = "",
    wait: float = 6,
) -> None:
    """Set it for so many seconds, and wait until each function has read it."""

    def act() -> object:
        until = clock.now() + timedelta(seconds=seconds) if seconds else None
        changes = configurator()
        return changes.set(changes.read(), name, value, by=by, reason=reason, until=until).version

    stage.operate(f"sets {name} to {json.dumps(value)}", act)
    stage.passes(wait)


def remove_setting(stage: Stage, name: str, *, by: str = "bob", reason: str = "", wait: float = 6) -> None:
    def act() -> object:
        changes = configurator()
        return changes.remove(changes.read(), name, by=by, reason=reason).version

    stage.operate(f"removes {name}", act)
    stage.passes(wait)


def explains(stage: Stage, job_id: str, *, tenant: str = TENANT, stopped: bool = False) -> None:
    """Explain as `tidemill explain` does. With `stopped`, publish, wake and the workers count as not called."""

    def act() -> object:
        queues = {str(lane): urls.queue for lane, urls in composition.parts().lane_urls.items()}
        reader = JobFacts(clients.dynamodb(), clients.sqs(), table=JOBS_TABLE, queues=queues, clock=clock.now)
        facts = reader.read(tenant, job_id)
        if facts is None:
            return None
        told = {"answer": explain(facts), "story": [[at, what] for at, what in story(facts.job)]}
        if stopped:
            told["answer while functions are stopped"] = explain(replace(facts, stopped=_STOPPED))
        return told

    stage.operate(f"asks about job {job_id}", act)


def tried(act: Callable[..., object], *arguments: object, **more: object) -> object:
    """What the call gives, or the error of the engine that it raises."""
    try:
        return act(*arguments, **more)
    except TidemillError as error:
        return error


def each(jobs: Iterable[Job], act: Callable[[Job], object]) -> list[object]:
    """For each job its id and what comes of it."""
    return [[job.id, tried(act, job)] for job in jobs]


def breakers(stage: Stage, *names: str) -> None:
    """List the breakers as `tidemill breakers` does."""

    def act() -> object:
        client = clients.dynamodb()
        lines = (line for line in composition.parts().limits.lines() if line.cause is Cause.BREAKER)
        parked = AttentionCounts(client, table=JOBS_TABLE).parked(lambda _: lines)
        forced = configurator().acting().forced_breakers(clock.now())
        return held_lines.breakers(client, table=JOBS_TABLE, parked=parked, forced=forced, names=names)

    stage.operate(f"looks at the breakers {', '.join(names)}".rstrip(), act)


def spaced(stage: Stage, keys: str) -> Iterator[str]:
    """The keys of submissions, with some time between two."""
    for key in keys:
        yield key
        stage.passes(0.2)
