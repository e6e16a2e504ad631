"""What the drills about strain ask besides their alarm: refusals, and jobs of others that begin soon."""

from typing import Final

import pytest

from demo.drills import runbook, runner
from demo.drills.drill import Drill
from demo.drills.errors import DrillError
from demo.drills.incidents.tenant_flood import EACH_MINUTE, FIRST, TenantFlood
from tests.support.fake_stage import FakeStage, FakeWatch

#: Evaluations.
PATIENCE: Final = 8


def _run(drill: Drill) -> runner.Report:
    assert isinstance(drill.stage, FakeStage)
    fix = runbook.fix(drill.name, heading=drill.heading)
    return runner.run(drill, FakeWatch(drill.stage, drill.alarm), fix, patience=PATIENCE)


def test_a_drill_fails_if_the_flood_is_not_refused() -> None:
    stage = FakeStage(TenantFlood.name)
    stage.refuses = False
    with pytest.raises(DrillError, match="not refused with 429 and Retry-After"):
        _run(TenantFlood(stage))


def test_a_drill_fails_if_the_jobs_of_others_begin_late_after_the_fix() -> None:
    stage = FakeStage(TenantFlood.name)
    stage.late = True
    with pytest.raises(DrillError, match="began 60 s late"):
        _run(TenantFlood(stage))


def test_a_flood_goes_on_until_the_end() -> None:
    drill = TenantFlood(FakeStage(TenantFlood.name))
    _run(drill)

    assert len(drill.traffic) > FIRST + EACH_MINUTE
