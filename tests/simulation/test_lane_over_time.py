"""The model of a lane over time beside the simulator, where both can answer: a backlog, and a burst on a steady load.

The simulator plays protocols and has no quotas, so only the workers of the lane bind: a number of batches at a time.
`python -m demo.figures capacity` plays the same model with AWS's figures.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

import pytest

from demo.figures.capacity_model import STEP_SECONDS, Capacity, Played, play
from demo.figures.index_model import IndexModel
from tests.simulation.checks.violation import state_of
from tests.simulation.deployment import Deployment
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import no_faults
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.cost import measured
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.names import JOB_KEY, Lane

ROOT: Final = Path(__file__).parents[2]
TENANT: Final = "111122223333:AROAADA"
WORKERS: Final = 6
#: The simulator draws the size of each batch, from 1 to this.
LARGEST_BATCH: Final = 5
BATCH: Final = (1 + LARGEST_BATCH) // 2
HANDLER_SECONDS: Final = 2.0
#: A call takes 1 to 11 ms of virtual time each way. A message waits 20 ms for a poll.
CALL_SECONDS: Final = 0.012
POLL_SECONDS: Final = 0.020
CAPACITY: Final = Capacity(
    batch=BATCH,
    batch_seconds=POLL_SECONDS + measured.WORKER_CALLS * CALL_SECONDS + HANDLER_SECONDS,
    begins_with=WORKERS,
    max_concurrency=WORKERS,
)
#: 300 jobs at once; and a job each second, with 120 more after a minute.
BACKLOG: Final = (0.0,) * 300
BURST: Final = (*(float(second) for second in range(180)), *(60.0,) * 120)


@cache
def simulated(submitted: Sequence[float]) -> list[float]:
    """Seconds until each job starts, in the order of `submitted`."""
    faults = no_faults(Random(1))
    stage = Deployment().stage
    lanes = [
        replace(lane, max_concurrency=WORKERS, batch_size=LARGEST_BATCH) if lane.name == Lane.DEFAULT else lane
        for lane in stage.lanes
    ]
    with World(1, Deployment(stage=replace(stage, lanes=tuple(lanes))), faults=faults) as world:
        scheduler, began_ms = world.scheduler, world.scheduler.now_ms
        ids: dict[int, str] = {}
        started: dict[str, float] = {}

        def changed(record: Record) -> None:
            if record.after and "state" in record.after and state_of(record.after) is State.RUNNING:
                started.setdefault(record.after[JOB_KEY]["S"], (scheduler.now_ms - began_ms) / 1000)

        def submit(number: int) -> None:
            submission = Submission(type="sim.effect", payload={"seconds": HANDLER_SECONDS}, key=f"job-{number}")
            ids[number] = composition.parts().submit(submission, tenant=TENANT, trace="request").job.id

        def call(number: int) -> None:
            scheduler.spawn(world.process(f"caller {number}"), partial(submit, number))

        world.jobs.watchers.append(changed)
        for number, second in enumerate(submitted):
            scheduler.at(began_ms + round(1000 * second), call, number)
        scheduler.run(until_ms=began_ms + 600_000, most_steps=10**7, over=lambda: len(started) == len(submitted))
    assert len(started) == len(submitted)
    return [started[f"{TENANT}#{ids[number]}"] - second for number, second in enumerate(submitted)]


@cache
def modelled(submitted: Sequence[float]) -> tuple[Played, list[float]]:
    """The run, and seconds until each job starts: jobs of one time start one after another."""

    def offered(now: float) -> float:
        return sum(now <= second < now + STEP_SECONDS for second in submitted) / STEP_SECONDS

    index = IndexModel(shards=1, partitions=1, bound=1e6)
    played = play(CAPACITY, offered, seconds=300, index=index)
    order = sorted(range(len(submitted)), key=lambda number: submitted[number])
    starts = {
        number: played.at[bisect_left(played.started, place + 0.5)] - submitted[number]
        for place, number in enumerate(order)
    }
    return played, [starts[number] for number in range(len(submitted))]


def test_the_page_shows_the_times_of_the_model() -> None:
    shown = re.findall(r"the last one starts after ([\d.]+) s", (ROOT / "docs/operations/scale.md").read_text())

    assert shown == [f"{max(modelled(submitted)[1]):.1f}" for submitted in (BACKLOG, BURST)]


def test_a_backlog_drains_in_the_time_of_the_model() -> None:
    assert max(simulated(BACKLOG)) == pytest.approx(max(modelled(BACKLOG)[1]), rel=0.1)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_backlog_drains_evenly_in_both(share: float) -> None:
    place = round(share * len(BACKLOG))

    assert sorted(simulated(BACKLOG))[place] == pytest.approx(sorted(modelled(BACKLOG)[1])[place], rel=0.15)


def test_a_burst_on_a_steady_load_waits_as_long_as_in_the_model() -> None:
    in_burst = [number for number, second in enumerate(BURST) if second == 60.0]
    played, model = modelled(BURST)
    waits = [simulated(BURST)[number] for number in in_burst]

    assert median(waits) == pytest.approx(median(model[number] for number in in_burst), rel=0.2)
    assert max(waits) == pytest.approx(max(model[number] for number in in_burst), rel=0.2)
    assert played.drained_at is not None


def test_the_steady_load_beside_the_burst_waits_for_it_and_not_longer_in_both() -> None:
    before, after = range(50), range(150, 180)
    _, model = modelled(BURST)

    for waits in (simulated(BURST), model):
        assert max(waits[number] for number in before) < 2
        assert max(waits[number] for number in after) < 2
