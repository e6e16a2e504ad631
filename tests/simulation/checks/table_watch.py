"""Calls checks at each change to the jobs table. A violation ends the simulation, even if the writer catches errors."""

from collections.abc import Callable, Sequence

from tests.simulation.checks.violation import Item, Violation
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World

Check = Callable[[str, Item, Item], None]


def watch_items(world: World, check: Callable[[str, Record], None]) -> None:
    """`check` gets the key of each changed item and the change."""

    def changed(record: Record) -> None:
        try:
            check(record.keys["pk"]["S"], record)
        except Violation as violation:
            world.scheduler.fail(violation)

    world.jobs.watchers.append(changed)


def watch_jobs(
    world: World, *, changed: Sequence[Check], inserted: Callable[[str, Item], None] = lambda _key, _after: None
) -> None:
    """Each check of `changed` gets the key of a job and its document before and after; `inserted` that of a new job."""

    def check_job(record: Record) -> None:
        before, after = record.before, record.after
        if not after or "state" not in after:
            return
        key = record.keys["pk"]["S"]
        try:
            if before is None or before["created_at"] != after["created_at"]:
                inserted(key, after)
            else:
                for check in changed:
                    check(key, before, after)
        except Violation as violation:
            world.scheduler.fail(violation)

    world.jobs.watchers.append(check_job)
