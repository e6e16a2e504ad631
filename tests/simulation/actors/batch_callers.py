"""Callers who submit many jobs at once, and send again what was not accepted."""

from collections.abc import Sequence
from typing import Any, Final

from tests.simulation.actors.api_gateway import ACCEPTED, OK, UNAVAILABLE, UNPROCESSABLE, as_json, ask
from tests.simulation.actors.callers import Asked, Told, may_be_refused
from tests.simulation.checks.violation import observe
from tests.simulation.world.faults import Fault
from tests.simulation.world.world import World
from tidemill.application.submit import keyed_job_id

#: One that cannot be accepted. It harms no other of its batch.
_NONSENSE: Final = {"type": "sim.unheard-of"}
_MOST_TRIES: Final = 30
_HOT_FOR_MS: Final = 30_000


class BatchCaller:
    """Sends its submissions in one request until each is accepted: all of them again, or only what is left."""

    def __init__(self, world: World, asked: Sequence[Asked], number: int) -> None:
        self._world = world
        self._tenant = asked[0].tenant
        self._name = f"batch {number}"
        self._told = [Told(world, each, self._name) for each in asked]
        world.weather.note(Fault.BATCHED)
        world.scheduler.at(asked[0].at_ms, self._begin)

    def _begin(self) -> None:
        self._world.scheduler.spawn(self._world.process(self._name), self._submit)

    def _submit(self) -> None:
        random = self._world.random
        wanted = self._told
        for _ in range(_MOST_TRIES):
            left = self._sent(wanted)
            if not left and not self._world.weather.strikes(Fault.BATCH_AGAIN):
                return
            wanted = random.choice([left or self._told, self._told])
            self._world.scheduler.sleep(random.randint(10, 60_000))

    def _sent(self, wanted: Sequence[Told]) -> list[Told]:
        """Those that are not accepted, or of whom nothing is known."""
        if wanted and self._world.weather.strikes(Fault.BATCH_IN_PART):
            submission = self._world.random.choice(wanted).asked.submission
            key = f"{self._tenant}#{keyed_job_id(self._tenant, submission.key or '')}"
            self._world.hot.heat(key, for_ms=self._world.random.randint(1_000, _HOT_FOR_MS))
        jobs: list[Any] = [
            as_json(told.asked.submission)
            | ({"idempotency_key": told.asked.submission.key} if told.asked.submission.key else {})
            for told in wanted
        ]
        nonsense_at = self._world.random.randint(0, len(jobs))
        jobs.insert(nonsense_at, _NONSENSE)
        answer = ask(self._world, "submit", "POST", "/jobs/batch", tenant=self._tenant, body={"jobs": jobs})
        if answer is None or answer.status == UNAVAILABLE:
            return [told for told in wanted if not told.asked.ids]
        parts = answer.body["jobs"] if answer.status == OK else []
        observe(
            self._world.scheduler,
            # Or the store was too slow for all of them, so that it was not looked at.
            len(parts) == len(jobs) and parts[nonsense_at]["status"] in {UNPROCESSABLE, UNAVAILABLE},
            "a batch is answered job by job",
            f"{answer.status}: {answer.body}",
            "*",
        )
        del parts[nonsense_at]
        return [told for told, part in zip(wanted, parts, strict=True) if not self._taken(told, part)]

    def _taken(self, told: Told, part: Any) -> bool:
        """Whether that is the end of it."""
        if part["status"] in {OK, ACCEPTED}:
            told.accepted(part["job"]["id"])
            matches = part["job"]["type"] == told.asked.submission.type
            what = f"{part['job']['type']} for {told.asked.submission.type}"
            observe(self._world.scheduler, matches, "a batch is answered job by job", what, part["job"]["id"])
            return True
        refused = part["status"] == UNPROCESSABLE and may_be_refused(told.asked)
        fits = refused or part["status"] == UNAVAILABLE
        observe(self._world.scheduler, fits, "a batch is answered job by job", str(part), "*")
        return bool(told.asked.ids) or refused
