"""Checks of backfills: each success that skipped work says so, and each mark gets one job at most."""

from collections import defaultdict
from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    maps_of,
    number_of,
    require,
    run_ended,
    state_of,
    tenant_of,
    text_of,
)
from tests.simulation.world.world import World
from tidemill.domain.states import State

_MARKED: Final = "a success names the work that it skipped"
_KEPT: Final = "a mark of skipped work is not lost"
_ONCE: Final = "skipped work is made up for at most once"
#: The type whose every run skips work, the names, and the types that make up for it.
_SKIPS: Final = "sim.books"
_MARKS: Final = {"receipt": "sim.sends", "report": "sim.sends"}


class BackfillChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By key and time of submission of a job, the jobs that make up for what it skipped.
        self._made: dict[tuple[str, int], set[str]] = defaultdict(set)
        watch_jobs(world, changed=(self.marks_come_with_the_success, self.marks_stay), inserted=self.it_is_marked)

    def marks_come_with_the_success(self, key: str, before: Item, after: Item) -> None:
        ended = run_ended(before, after) and state_of(after) is State.SUCCEEDED
        marks = {text_of(one, "name"): text_of(one, "type") for one in maps_of(after, "skipped")}
        expected = _MARKS if text_of(after, "type") == _SKIPS else {}
        if ended:
            require(marks == expected, _MARKED, f"marked: {marks}", key)
        else:
            require(before.get("skipped") == after.get("skipped"), _MARKED, f"{marks} without a success", key)

    def marks_stay(self, key: str, before: Item, after: Item) -> None:
        was, now = maps_of(before, "backfilled"), maps_of(after, "backfilled")
        names = [text_of(one, "name") for one in now]
        grown = now[: len(was)] == was and len(now) - len(was) in {0, 1} and len(set(names)) == len(names)
        require(grown, _KEPT, f"{was} became {now}", key)
        if now != was:
            same = {name: value for name, value in after.items() if name != "backfilled"}
            rest = {name: value for name, value in before.items() if name != "backfilled"}
            require(same == rest, "a backfill leaves the rest of its job as it is", f"{before} became {after}", key)

    def it_is_marked(self, key: str, after: Item) -> None:
        """The transaction marks the other job first."""
        if text_of(after, "type") not in _MARKS.values():
            return
        other = f"{tenant_of(key)}#{text_of(after, 'parent')}"
        done = self._world.jobs.items.get((other,)) or {}
        by = [text_of(one, "job_id") for one in maps_of(done, "backfilled")]
        require(key.rpartition("#")[2] in by, _ONCE, f"{other} is made up for by {by}", key)
        apart = text_of(after, "lane") == "bulk" and "group" not in after
        require(apart, "a backfill competes with no other work", f"{after} of {done}", key)
        made = self._made[other, number_of(done, "created_at")]
        made.add(key)
        require(len(made) <= len(_MARKS), _ONCE, f"{made} make up for {other}", key)

    def at_end(self) -> None:
        """Raises `Violation`."""
        known = {key for made in self._made.values() for key in made}
        for key, item in self._world.jobs.items.items():
            for one in maps_of(item, "backfilled"):
                job = f"{tenant_of(key[0])}#{text_of(one, 'job_id')}"
                require(job in known, _KEPT, f"no {job} was inserted", key[0])


__all__ = ["BackfillChecks"]
