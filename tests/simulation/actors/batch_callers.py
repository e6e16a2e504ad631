"""Callers that submit many jobs in one request and retry the ones that were not accepted."""

from collections.abc import Sequence
from typing import Any, Final

from tests.simulation.actors.api_gateway import ACCEPTED, OK, UNAVAILABLE, UNPROCESSABLE, as_json, ask
from tests.simulation.actors.callers import PlannedSubmission, TrackedSubmission, may_be_refused
from tests.simulation.checks.violation import require_in_task
from tests.simulation.world.faults import Fault
from tests.simulation.world.world import World
from tidemill.application.submission.job_ids import keyed_job_id

#: A job that no version accepts. It must not affect the other jobs of its batch.
_INVALID_JOB: Final = {"type": "sim.unheard-of"}
_MOST_TRIES: Final = 30
_THROTTLED_FOR_MS: Final = 30_000


class BatchCaller:
    """Sends its submissions in one request until each is accepted: all of them again, or only the remaining ones."""

    def __init__(self, world: World, planned: Sequence[PlannedSubmission], number: int) -> None:
        self._world = world
        self._tenant = planned[0].tenant
        self._name = f"batch {number}"
        self._tracked = [TrackedSubmission(world, each, self._name) for each in planned]
        world.faults.count(Fault.BATCHED)
        world.scheduler.at(planned[0].at_ms, self._begin)

    def _begin(self) -> None:
        self._world.scheduler.spawn(self._world.process(self._name), self._submit)

    def _submit(self) -> None:
        random = self._world.random
        wanted = self._tracked
        for _ in range(_MOST_TRIES):
            left = self._sent(wanted)
            if not left and not self._world.faults.occurs(Fault.BATCH_REPEATED):
                return
            wanted = random.choice([left or self._tracked, self._tracked])
            self._world.scheduler.sleep(random.randint(10, 60_000))

    def _sent(self, wanted: Sequence[TrackedSubmission]) -> list[TrackedSubmission]:
        """Send one batch. Return the submissions that were rejected or not answered."""
        if wanted and self._world.faults.occurs(Fault.BATCH_PARTLY_THROTTLED):
            submission = self._world.random.choice(wanted).planned.submission
            key = f"{self._tenant}#{keyed_job_id(self._tenant, submission.key or '')}"
            self._world.throttled_items.throttle(key, for_ms=self._world.random.randint(1_000, _THROTTLED_FOR_MS))
        jobs: list[Any] = [
            as_json(tracked.planned.submission)
            | ({"idempotency_key": tracked.planned.submission.key} if tracked.planned.submission.key else {})
            for tracked in wanted
        ]
        invalid_at = self._world.random.randint(0, len(jobs))
        jobs.insert(invalid_at, _INVALID_JOB)
        answer = ask(self._world, "submit", "POST", "/jobs/batch", tenant=self._tenant, body={"jobs": jobs})
        if answer is None or answer.status == UNAVAILABLE:
            return [tracked for tracked in wanted if not tracked.planned.ids]
        parts = answer.body["jobs"] if answer.status == OK else []
        require_in_task(
            self._world.scheduler,
            # If the store is too slow for the whole batch, submit answers 503 for the invalid job as well.
            len(parts) == len(jobs) and parts[invalid_at]["status"] in {UNPROCESSABLE, UNAVAILABLE},
            "a batch is answered job by job",
            f"{answer.status}: {answer.body}",
            "*",
        )
        del parts[invalid_at]
        return [tracked for tracked, part in zip(wanted, parts, strict=True) if not self._taken(tracked, part)]

    def _taken(self, tracked: TrackedSubmission, part: Any) -> bool:
        """Whether this submission needs no retry."""
        if part["status"] in {OK, ACCEPTED}:
            tracked.accepted(part["job"]["id"])
            matches = part["job"]["type"] == tracked.planned.submission.type
            what = f"{part['job']['type']} for {tracked.planned.submission.type}"
            require_in_task(self._world.scheduler, matches, "a batch is answered job by job", what, part["job"]["id"])
            return True
        refused = part["status"] == UNPROCESSABLE and may_be_refused(tracked.planned)
        fits = refused or part["status"] == UNAVAILABLE
        require_in_task(self._world.scheduler, fits, "a batch is answered job by job", str(part), "*")
        return bool(tracked.planned.ids) or refused
