"""Callers and operators that undo jobs: early, in time, late, twice, and at once with others."""

from random import Random
from typing import Final

from tests.simulation.actors.api_gateway import CONFLICT, NOT_FOUND, OK, UNAVAILABLE, ask
from tests.simulation.actors.callers import PlannedSubmission, run_tool
from tests.simulation.checks.undos import UndoChecks
from tests.simulation.checks.violation import Item, has_expired, map_of, require_in_task, state_of, tenant_of, text_of
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.domain.errors import UndoRefusedError
from tidemill.domain.states import WITHOUT_EFFECT, State

#: The most callers that undo one job.
_MOST_CALLERS: Final = 4
_BY_OPERATOR: Final = 0.4
#: Shares of the undos that their caller cancels, or tries to undo.
_CANCELLED: Final = 0.2
_UNDONE_AGAIN: Final = 0.2
#: After the submission. The first ones come before the job has succeeded.
_WITHIN_MS: Final = (300, 10_000, 60_000, 600_000, 3_000_000)
_MOST_TRIES: Final = 4
_PAUSE_MS: Final = (10, 20_000)
#: Longest delay of a response, and largest clock skew.
_ABOUT_NOW_MS: Final = 120_000
_ANSWERED: Final = "an undo is answered as the job allows it"


class Undoers:
    """Undo jobs in one world. Their own chance leaves the other seeds as they are."""

    def __init__(self, world: World, checks: UndoChecks) -> None:
        self._world = world
        self._random = Random(f"undos {world.seed}")
        self._checks = checks

    def plan(self) -> None:
        """Draw the undos of the submissions that were planned."""
        scheduler, random = self._world.scheduler, self._random
        for planned in self._world.submissions:
            if planned.submission.type != "sim.books":
                continue
            for _ in range(random.randint(0, _MOST_CALLERS)):
                at_ms = planned.at_ms + random.randint(0, random.choice(_WITHIN_MS))
                act = self._as_operator if random.random() < _BY_OPERATOR else self._as_owner
                scheduler.at(at_ms, act, planned)

    def _as_owner(self, planned: PlannedSubmission) -> None:
        process = self._world.process(planned.tenant)
        self._world.scheduler.spawn(process, lambda: self._ask(planned))

    def _ask(self, planned: PlannedSubmission) -> None:
        """Ask again until it is answered, and sometimes once more."""
        for _ in range(_MOST_TRIES):
            if planned.ids and self._answered(planned) and self._random.random() < 0.7:
                return
            self._world.scheduler.sleep(self._random.randint(*_PAUSE_MS))

    def _answered(self, planned: PlannedSubmission) -> bool:
        world, key = self._world, _key(planned)
        before, asked_ms = world.jobs.items.get((key,)), world.scheduler.now_ms
        answer = ask(world, "control", "POST", f"/jobs/{planned.ids[-1]}/undo", tenant=planned.tenant)
        if answer is None or answer.status == UNAVAILABLE:
            return False
        versions = self._versions(key, before, asked_ms)
        if answer.status == NOT_FOUND:
            # Only the next version has the route while a deployment is under way.
            self._require(self._may_be_gone(versions), "404", key)
        elif answer.status == CONFLICT:
            self._require(self._refuses(key, versions), "409", key)
        else:
            undone = {text_of(map_of(item, "undone"), "job_id") for item in versions if item}
            fits = answer.body["undoes"] == planned.ids[-1] and answer.body["id"] in undone
            fits = fits and answer.body["state"] not in WITHOUT_EFFECT
            self._require(answer.status == OK and fits, f"{answer.status}: {answer.body}, not {undone}", key)
            self._checks.accepted.append((key, answer.body["id"]))
            self._meddle(planned.tenant, answer.body["id"])
        return True

    def _meddle(self, tenant: str, undo_id: str) -> None:
        """Cancel the undo, so that another one is needed, or try to undo it."""
        if (chance := self._random.random()) < _CANCELLED:
            ask(self._world, "control", "POST", f"/jobs/{undo_id}/cancel", tenant=tenant)
        elif chance < _CANCELLED + _UNDONE_AGAIN:
            answer = ask(self._world, "control", "POST", f"/jobs/{undo_id}/undo", tenant=tenant)
            refused = answer is None or answer.status in {CONFLICT, NOT_FOUND, UNAVAILABLE}
            self._require(refused, "an undo was undone", f"{tenant}#{undo_id}")

    def _as_operator(self, planned: PlannedSubmission) -> None:
        def act(_process: Process) -> None:
            if not planned.ids:
                return
            key, now_ms = _key(planned), self._world.scheduler.now_ms
            before = self._world.jobs.items.get((key,))
            try:
                accepted = composition.parts().undoer(planned.tenant, planned.ids[-1], by="eve", reason="a typo")
            except UndoRefusedError as refused:
                versions = self._versions(key, before, now_ms)
                self._require(self._refuses(key, versions), f"an operator: {refused}", key)
                return
            if accepted:
                self._checks.accepted.append((key, accepted.job.id))
            else:
                self._require(self._may_be_gone(self._versions(key, before, now_ms)), "no job", key)

        run_tool(self._world, "eve", act)

    def _versions(self, key: str, before: Item | None, since_ms: int) -> list[Item | None]:
        changes = self._world.trace.changes
        return [before, *(change.after for change in changes if change.key == key and change.at_ms >= since_ms)]

    def _may_be_gone(self, versions: list[Item | None]) -> bool:
        soon_ms = self._world.scheduler.now_ms + _ABOUT_NOW_MS
        return any(item is None or has_expired(item, soon_ms) for item in versions)

    def _refuses(self, key: str, versions: list[Item | None]) -> bool:
        """It had not succeeded, or recorded nothing, another job supersedes it, or its undo may be gone."""
        known = [item for item in versions if item]
        if any(
            "superseded_by" in item or state_of(item) is not State.SUCCEEDED or "undo" not in item for item in known
        ):
            return True
        soon_ms = self._world.scheduler.now_ms + _ABOUT_NOW_MS
        undos = [
            self._world.jobs.items.get((f"{tenant_of(key)}#{text_of(map_of(item, 'undone'), 'job_id')}",))
            for item in known
            if "undone" in item
        ]
        return any(undo is None or has_expired(undo, soon_ms) for undo in undos)

    def _require(self, holds: bool, what: str, key: str) -> None:
        require_in_task(self._world.scheduler, holds, _ANSWERED, what, key)


def _key(planned: PlannedSubmission) -> str:
    return f"{planned.tenant}#{planned.ids[-1]}"
