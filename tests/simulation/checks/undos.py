"""Checks of undos: an undo is submitted at most once, only after the success that it undoes, and none is lost."""

import json
from collections import defaultdict
from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    map_of,
    number_of,
    require,
    run_ended,
    state_of,
    tenant_of,
    text_of,
)
from tests.simulation.world.world import World
from tidemill.domain.job import DeathReason
from tidemill.domain.states import WITHOUT_EFFECT, State

_ONCE: Final = "an undo is submitted at most once"
_AFTER: Final = "an undo follows the success that it undoes"
_KEPT: Final = "an undo that was accepted is not lost"
_ONE: Final = "one job supersedes another"
_CORRECTED: Final = "a correction runs after the undo"
_RECORDED: Final = "a success records its undo"
_DISCARDED: Final = "a superseded job does not stay dead"
#: The types that record an undo, and what undoes them.
_UNDONE_BY: Final = {"sim.books": "sim.unbooks", "sim.unbooks": "sim.unbooks"}


class UndoChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By key and time of submission of a job, the jobs that undo it.
        self._undos: dict[tuple[str, int], set[str]] = defaultdict(set)
        #: Keys of jobs, with the ids of the undos that callers got.
        self.accepted: list[tuple[str, str]] = []
        checks = (self.successes_record_it, self.it_stays, self.one_supersedes_it, self.it_is_marked_once)
        watch_jobs(world, changed=checks, inserted=self.it_follows)

    def successes_record_it(self, key: str, before: Item, after: Item) -> None:
        expected = run_ended(before, after) and state_of(after) is State.SUCCEEDED
        undo, type_ = map_of(after, "undo"), _UNDONE_BY.get(text_of(after, "type"))
        if expected and type_:
            fits = text_of(undo, "type") == type_ and json.loads(text_of(undo, "payload"))["key"] == key
            require(fits, _RECORDED, f"recorded: {undo}", key)
        known = "undo" in before or expected
        require(known or not undo, _RECORDED, f"a {state_of(after)} job has {undo}", key)

    def it_stays(self, key: str, before: Item, after: Item) -> None:
        lost = "undo" in before and after.get("undo") != before["undo"]
        require(not lost, _KEPT, f"undo became {after.get('undo')}", key)
        if "undone" in before and after.get("undone") != before["undone"]:
            undo = self._world.jobs.items.get((f"{tenant_of(key)}#{text_of(map_of(before, 'undone'), 'job_id')}",))
            require(state_of(undo) in WITHOUT_EFFECT, _KEPT, f"undone became {after.get('undone')}", key)

    def one_supersedes_it(self, key: str, before: Item, after: Item) -> None:
        """Another one may only follow one that was cancelled or has expired."""
        was, now = text_of(before, "superseded_by"), text_of(after, "superseded_by")
        if now == was:
            return
        later = self._world.jobs.items.get((f"{tenant_of(key)}#{was}",))
        ended = not was or later is None or state_of(later) in WITHOUT_EFFECT
        require(bool(now) and ended, _ONE, f"{was}, which is {state_of(later)}, became {now}", key)
        require("undoes" not in before, _CORRECTED, "an undo was superseded", key)

    def it_is_marked_once(self, key: str, before: Item, after: Item) -> None:
        if after.get("undone") == before.get("undone"):
            return
        require("undoes" not in before, _CORRECTED, "an undo was undone", key)
        require(state_of(before) is State.SUCCEEDED, _AFTER, f"a {state_of(before)} job was marked", key)
        marked = {"undone": after["undone"]}
        same = after == {**before, **marked}
        require(same, "an undo leaves the rest of its job as it is", f"{before} became {after}", key)

    def it_follows(self, key: str, after: Item) -> None:
        """The transaction marks the other job first."""
        if "undoes" not in after:
            return
        other = f"{tenant_of(key)}#{text_of(after, 'undoes')}"
        done = self._world.jobs.items.get((other,))
        marked = text_of(map_of(done or {}, "undone"), "job_id") == key.rpartition("#")[2]
        require(state_of(done) is State.SUCCEEDED and marked, _AFTER, f"{other} is {state_of(done)}", key)
        same = done is not None and all(
            after.get(name) == map_of(done, "undo").get(name) for name in ("type", "lane", "tags")
        )
        # In the turn of the job that supersedes it, the undo is in no group.
        groups = [None if done is None else done.get("group"), *([None] if "superseded_by" in (done or {}) else [])]
        same = same and after.get("group") in groups
        require(same, "an undo is what its job recorded", f"{after} undoes {done}", key)
        undos = self._undos[other, number_of(done, "created_at")]
        # One that was cancelled and then purged does not stand either.
        now_ms = self._world.scheduler.now_ms
        standing = {undo for undo in undos if state_of(self._at(undo, now_ms)) not in WITHOUT_EFFECT}
        require(not standing, _ONCE, f"{standing} undo {other}, too", key)
        undos.add(key)

    def at_end(self) -> None:
        """Raises `Violation`."""
        known = {key for undos in self._undos.values() for key in undos}
        for done, job_id in self.accepted:
            require(f"{tenant_of(done)}#{job_id}" in known, _KEPT, f"{job_id} was accepted", done)
        self._corrections_run_after_the_undo()
        for key, item in self._world.jobs.items.items():
            if "superseded_by" in item and state_of(item) is State.DEAD:
                # Reconcile ends a job whose messages are lost, also if it was asked to end.
                death = text_of(item, "death")
                require(death == DeathReason.UNDELIVERABLE, _DISCARDED, death, key[0])
            if "undone" in item:
                undo = f"{tenant_of(key[0])}#{text_of(map_of(item, 'undone'), 'job_id')}"
                require(undo in known, _KEPT, f"no {undo} was inserted", key[0])

    def _corrections_run_after_the_undo(self) -> None:
        """When a run of one begins, what it supersedes has no effect: by the changes of the table up to then."""
        for run in self._world.runs:
            if run.kind != "sim.rebooks":
                continue
            item = self._at(run.key, run.began_ms)
            earlier = self._at(f"{run.tenant}#{text_of(item, 'supersedes')}", run.began_ms, superseded_by=run.job_id)
            undo = self._at(f"{run.tenant}#{text_of(map_of(earlier or {}, 'undone'), 'job_id')}", run.began_ms)
            fits = state_of(earlier) in WITHOUT_EFFECT or state_of(undo) is State.SUCCEEDED
            require(fits, _CORRECTED, f"the other is {state_of(earlier)}, its undo {state_of(undo)}", run.key)

    def _at(self, key: str, at_ms: int, **fields: str) -> Item | None:
        """The last document at that moment, deleted or not, with these fields: a new job may have the key since."""
        for change in reversed(self._world.trace.changes):
            item = change.after
            known = change.key == key and change.at_ms <= at_ms and item
            if known and all(text_of(item, name) == value for name, value in fields.items()):
                return item
        return None


__all__ = ["UndoChecks"]
