"""The restored table, and the deployment that puts it in the place of the former one."""

from functools import partial
from random import Random
from typing import Final

from tests.simulation.restore.claims import changed
from tests.simulation.restore.restore_state import Restore
from tests.simulation.world.dynamodb_table import Table
from tests.simulation.world.stream_mapping import StreamMapping
from tidemill.names import Env

RESTORED: Final = "restored"
_MOST_STEPS: Final = 1_000_000


def restored_table(restore: Restore) -> Table:
    """The table of the restore point under a new name, with its indexes and without a stream."""
    world = restore.world
    table = restore.world.deployment.jobs_table()
    table.name = RESTORED
    for key, item in restore.point.items():
        table.put(key, item, now_ms=world.scheduler.now_ms)
    for shard in table.shards:
        shard.clear()
    table.watchers.append(partial(changed, restore))
    world.dynamodb.add(table)
    return table


def deploy(restore: Restore, random: Random) -> None:
    """Each function changes over at a time of its own, publish before the mapping of its stream."""
    world, scheduler = restore.world, restore.world.scheduler
    takes_ms = random.choice([1_000, 60_000])

    def change(name: str) -> None:
        world.log("deployment", f"changes {name}")
        function = world.functions[name]
        function.environment = {**function.environment, Env.JOBS_TABLE: RESTORED, Env.EPOCH: str(restore.epoch)}

    for name in world.functions:
        if name != "publish":
            scheduler.at(scheduler.now_ms + random.randint(0, takes_ms), change, name)
    scheduler.run(until_ms=scheduler.now_ms + random.randint(0, takes_ms), most_steps=_MOST_STEPS)
    change("publish")
    world.stream.stalled = False
    scheduler.run(until_ms=scheduler.now_ms + random.randint(1, 60_000), most_steps=_MOST_STEPS)
    _replace_mapping(restore)
    scheduler.run(until_ms=scheduler.now_ms + takes_ms, most_steps=_MOST_STEPS)
    restore.deployed_ms = scheduler.now_ms


def _replace_mapping(restore: Restore) -> None:
    """The new mapping begins at the oldest record. The former one is deleted a little later."""
    world, deployment = restore.world, restore.world.deployment
    former = world.stream
    world.stream = StreamMapping(
        restore.table,
        world.functions["publish"],
        patterns=deployment.stream_patterns,
        batch_size=deployment.stream_batch_size,
        retries=deployment.stream_retries,
        oldest_seconds=deployment.stream_oldest_seconds,
        failures=world.failures,
        scheduler=world.scheduler,
        faults=world.faults,
        trace=world.trace,
    )
    world.stream.read_from_the_oldest()
    world.scheduler.after(30_000, former.delete)
