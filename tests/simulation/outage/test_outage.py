"""Some outages of half an hour keep their bounds. `python -m tests.simulation.outage --seeds 1000` plays many."""

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.outage.bounds import broken_by, figures, others_slower
from tests.simulation.outage.mutants import MUTANTS, OutageMutant
from tests.simulation.outage.scenario import Outage, play, start_latencies_without
from tests.simulation.outage.variant import Variant, variant_of
from tests.simulation.world.downstream import Trouble
from tests.support.mutant_cases import first_of

_HALF_AN_HOUR = timedelta(minutes=30)
_PLAIN = Variant(
    capacity=1,
    workers=(2, 3),
    backlog_seconds=60,
    hangs=False,
    partial=False,
    gaps=(),
    duplicates=False,
    throttled=False,
    replaced=False,
    crash_share=0.0,
)
_KEPT = Outage(
    seed=0,
    variant=_PLAIN,
    calls=190,
    most_calls=190,
    attempts=3,
    most_attempts=3,
    claims=200,
    most_claims=200,
    closed_after=60.0,
    goodput_after=120.0,
    backlog=100,
    drained_after=60.0,
    reopened=1,
    downs=1,
    forgotten=0,
    crashes=0,
    left=0,
    others=[100.0, 110.0],
    others_in_drain=[100.0, 110.0],
    new_jobs_share=0.2,
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_an_outage_keeps_its_bounds(seed: int) -> None:
    assert broken_by(play(seed, lasts=_HALF_AN_HOUR)) == []


def test_every_mutant_can_be_applied() -> None:
    for each in MUTANTS:
        each.mutant.checked()


@pytest.mark.slow
@pytest.mark.parametrize("each", first_of(MUTANTS), ids=lambda each: each.mutant.name)
def test_a_mutant_is_caught(each: OutageMutant) -> None:
    assert broken_by(play(each.seed, lasts=_HALF_AN_HOUR)) == []
    name, seed = each.mutant.name, str(each.seed)
    run = subprocess.run(
        [sys.executable, "-m", "tests.simulation.outage", "--seed", seed, "--seeds", "1", "--mutant", name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, each.breaks in run.stdout) == (1, True), run.stdout + run.stderr


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({}, []),
        ({"calls": 191}, ["too many calls"]),
        ({"attempts": 4}, ["too many attempts"]),
        ({"claims": 201}, ["too many claims"]),
        ({"closed_after": 60.1}, ["closed too late"]),
        ({"closed_after": None}, ["closed too late"]),
        ({"goodput_after": 120.1}, ["goodput too late"]),
        ({"drained_after": 60.1}, ["drained too late"]),
        ({"reopened": 2}, ["reopened"]),
        ({"forgotten": 1}, ["began anew"]),
        ({"left": 1}, ["jobs left"]),
    ],
)
def test_each_bound_is_reported(changed: dict[str, Any], broken: list[str]) -> None:
    assert broken_by(replace(_KEPT, **changed)) == broken


def test_a_figure_that_never_came_is_the_worst() -> None:
    closed = [line for line in figures([_KEPT, replace(_KEPT, closed_after=None)]) if "closed" in line]

    assert closed[0].endswith("60, never")


def test_other_types_are_compared_where_no_worker_was_killed() -> None:
    killed = replace(_KEPT, crashes=1, others=[9000.0, 9000.0])

    broken, lines = others_slower([_KEPT, killed], [[100.0, 110.0], [100.0, 110.0]])

    assert not broken
    assert lines[1].endswith("1.00 times")


@pytest.mark.parametrize(
    ("hangs", "gaps", "calm", "broken"),
    [
        (False, (), 91.0, False),
        (False, (), 90.0, True),
        (True, (), 78.0, False),
        (True, (), 76.0, True),
        (False, ((300, 400),), 78.0, False),
    ],
)
def test_other_types_may_start_later_where_calls_hang_or_the_line_drains(
    hangs: bool, gaps: tuple[tuple[int, int], ...], calm: float, broken: bool
) -> None:
    outage = replace(_KEPT, variant=replace(_PLAIN, hangs=hangs, gaps=gaps), others=[100.0, 100.0])

    assert others_slower([outage], [[calm, calm]])[0] is broken


def test_the_service_works_in_the_gaps_of_its_outage() -> None:
    flapping = replace(_PLAIN, gaps=((300, 400), (700, 800)), hangs=False)

    assert flapping.downs(1000, 2000) == [Trouble(1000, 1300), Trouble(1400, 1700), Trouble(1800, 2000)]


def test_the_seeds_draw_every_way_of_an_outage() -> None:
    drawn = [variant_of(seed, 1_800_000) for seed in range(60)]

    assert {each.capacity for each in drawn} == {1, 4}
    for name in ("hangs", "partial", "gaps", "duplicates", "throttled", "replaced", "crash_share"):
        assert {bool(getattr(each, name)) for each in drawn} == {True, False}


def test_a_run_without_an_outage_measures_the_same_jobs() -> None:
    assert len(start_latencies_without(0, lasts=timedelta(minutes=2))) == pytest.approx(4, abs=1)
