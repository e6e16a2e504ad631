"""The capacity model beside the simulator, where both can answer: how fast the jobs of one group take their turns."""

from functools import cache, partial
from itertools import pairwise
from random import Random
from statistics import mean, median
from typing import Final

from tests.simulation.actors.api_gateway import as_json, ask
from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.deployment import Deployment
from tests.simulation.world.faults import no_faults
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.cost import measured
from tidemill.domain.submission.submission import Submission

JOBS: Final = 60
#: Submitted so slowly that submissions do not conflict, and faster than the jobs run.
PER_SECOND: Final = 15
#: A call takes 1 to 11 ms of virtual time each way, and code takes none.
CALL_MS: Final = 12
ENDS_AFTER_MS: Final = 120_000


@cache
def turns_ms() -> list[int]:
    """The times from one success of the group to the next one, while others wait."""
    faults = no_faults(Random(1))
    with World(1, Deployment(), faults=faults) as world:
        scheduler = world.scheduler
        EventBridgeScheduler(world).begin()

        def submit(number: int) -> None:
            submission = Submission(type="sim.plain", payload={"count": number}, group="one")
            ask(world, "submit", "POST", "/jobs", tenant="111122223333:AROAONE", body=as_json(submission))

        for number in range(JOBS):
            scheduler.spawn(Process(f"caller {number}"), partial(submit, number), delay_ms=1000 * number // PER_SECOND)
        scheduler.run(until_ms=scheduler.now_ms + ENDS_AFTER_MS, most_steps=10**7)
        jobs = [item for item in world.jobs.items.values() if "group" in item and "state" in item]
        ended = sorted(int(item["finished_at"]["N"]) for item in jobs)
    assert len(ended) == JOBS
    # The functions have started, and jobs wait.
    behind = ended[JOBS // 2 :]
    return [after - before for before, after in pairwise(behind)]


MODEL_MS: Final = CALL_MS * (measured.WORKER_CALLS + measured.GROUP_WORKER_CALLS)


def test_a_turn_takes_the_calls_of_the_model_while_one_worker_goes_on() -> None:
    assert 0.75 * MODEL_MS <= median(turns_ms()) <= 1.25 * MODEL_MS


def test_turns_that_pass_through_stream_and_queue_are_left_out_by_the_model_and_add_less_than_half() -> None:
    assert mean(turns_ms()) <= 1.5 * MODEL_MS
