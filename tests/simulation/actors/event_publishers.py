"""Programs that publish events: once, twice, again after a deployment, and through a job."""

import json
from random import Random
from typing import Any, Final

from tests.simulation.actors.callers import TENANTS
from tests.simulation.checks.canaries import CANARIES
from tests.simulation.checks.events import EventChecks, Published
from tests.simulation.checks.violation import require_in_task
from tests.simulation.jobs.event_types import EVENT, topic
from tests.simulation.world.world import World
from tidemill import SnsRecord, composition
from tidemill.application.events.events import publish
from tidemill.application.events.published_records import publish_record
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.errors import KeyReusedError, TidemillError
from tidemill.domain.events.events import Event
from tidemill.domain.submission.submission import Submission
from tidemill.system import clock

#: Share of seeds with events, also of those with a deployment. The most of them.
_PUBLISHED: Final = 0.15
_PUBLISHED_IN_DEPLOYMENT: Final = 0.6
_MOST_EVENTS: Final = 3
_WITHIN_MS: Final = (50, 60_000)
_MOST_TRIES: Final = 30
_PAUSE_MS: Final = (10, 60_000)
#: Between two publications of one event. Within the last ones, a deployment begins and ends.
_REPEATED_AFTER_MS: Final = (0, 1_000, 300_000, 1_200_000)
_THROUGH_A_JOB: Final = 0.3


class EventPublishers:
    """Publish events in one world. Their own chance leaves the other seeds as they are."""

    def __init__(self, world: World, checks: EventChecks) -> None:
        self._world = world
        self._random = Random(f"events {world.seed}")
        self._checks = checks

    def plan(self) -> None:
        scheduler, random, takes_ms = self._world.scheduler, self._random, self._world.rollout.takes_ms
        if random.random() >= (_PUBLISHED_IN_DEPLOYMENT if takes_ms else _PUBLISHED):
            return
        within_ms = takes_ms or random.choice(_WITHIN_MS)
        for number in range(random.randint(1, _MOST_EVENTS)):
            data = {"count": random.randint(0, 3), "padding": "x" * random.choice([0, 0, 2_000])}
            group = random.choice([None, None, "berlin"])
            act = self._through_a_job if random.random() < _THROUGH_A_JOB else self._directly
            at_ms, tenant = scheduler.now_ms + random.randint(0, within_ms), random.choice(TENANTS)
            data["canary"] = CANARIES[tenant]
            event = Event(type=EVENT, data=data, key=f"happened-{number}", group=group)
            scheduler.at(at_ms, act, event, tenant)

    def _directly(self, event: Event, tenant: str, tries: int = _MOST_TRIES) -> None:
        """In a new process, which may be of another version of the code than the one before."""
        name = f"publisher of {event.key}"
        self._world.scheduler.spawn(self._world.process(name), lambda: self._publish(event, tenant, name, tries))

    def _publish(self, event: Event, tenant: str, name: str, tries: int) -> None:
        """Until it is accepted, and then perhaps again."""
        world, pause_ms = self._world, self._random.randint(*_PAUSE_MS)
        try:
            accepted = self._accepted(event, tenant, name)
        except KeyReusedError as error:
            what, about = f"a repetition was refused: {error}", f"{tenant}#"
            require_in_task(world.scheduler, False, "a repeated publication is one event", what, about)
        except TidemillError as error:
            world.log(name, f"could not publish: {error}")
        else:
            self._checks.published.append(Published(tenant=tenant, event=event, job_id=accepted.job.id))
            ids = {one.job_id for one in self._checks.published if (one.tenant, one.event) == (tenant, event)}
            what = f"{event.key} has been published as {ids}"
            require_in_task(world.scheduler, len(ids) == 1, "a repeated publication is one event", what, f"{tenant}#")
            if self._random.random() < 0.3:
                return
            pause_ms = self._random.choice(_REPEATED_AFTER_MS)
        if tries:
            world.scheduler.at(world.scheduler.now_ms + pause_ms, self._directly, event, tenant, tries - 1)

    def _accepted(self, event: Event, tenant: str, name: str) -> Accepted:
        """An event without group comes from a topic: SNS delivers a message until it is taken, and perhaps again."""
        if event.group is not None:
            return publish(event, composition.parts().submit, tenant=tenant, trace=name)
        # An envelope of this delivery, with the id and the text of each other one.
        record = SnsRecord(
            id=str(event.key), topic="arn", at=clock.now(), subject=None, message=json.dumps(dict(event.data))
        )
        accepted = publish_record(record, topic, composition.parts().submit, tenant=tenant, trace=name)
        assert accepted, "the message never changes"
        return accepted

    def _through_a_job(self, event: Event, tenant: str) -> None:
        plan: dict[str, Any] = {**event.data, "fails": self._random.choice([0, 1])}
        submission = Submission(type="sim.announces", payload=plan, key=event.key, group=event.group)
        name = f"publisher of {event.key}"

        def act() -> None:
            for _ in range(_MOST_TRIES):
                try:
                    composition.parts().submit(submission, tenant=tenant, trace=name)
                except TidemillError as error:
                    self._world.log(name, f"could not submit: {error}")
                    self._world.scheduler.sleep(self._random.randint(*_PAUSE_MS))
                else:
                    return

        self._world.scheduler.spawn(self._world.process(name), act)
