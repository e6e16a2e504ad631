"""Each drill passes with its alarm and the commands of its page, and fails without either. On a stage in memory."""

import re
import shlex
from collections.abc import Sequence
from typing import Final

import pytest

from demo.drills import runbook, runner
from demo.drills.drill import Drill
from demo.drills.errors import DrillError
from demo.drills.incidents import DRILLS
from demo.drills.incidents.restore import Restore
from demo.drills.traffic import JOBS, Traffic
from tests.support.fake_stage import DeafWatch, FakeStage, FakeWatch
from tidemill.local.wait import WaitError

#: Evaluations.
PATIENCE: Final = 8


def _fix(drill: type[Drill]) -> Sequence[str]:
    return runbook.fix(drill.name, heading=drill.heading)


def _commands(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if not line.startswith("#")]


@pytest.fixture(params=DRILLS.values(), ids=tuple(DRILLS))
def drill(request: pytest.FixtureRequest) -> Drill:
    made: type[Drill] = request.param
    return made(FakeStage(_fix(made)))


def _stage(drill: Drill) -> FakeStage:
    assert isinstance(drill.stage, FakeStage)
    return drill.stage


def _watch(drill: Drill, **options: str) -> FakeWatch:
    return FakeWatch(_stage(drill), drill.alarm, **options)


def _run(drill: Drill, watch: FakeWatch | None = None, *, fix: Sequence[str] | None = None) -> runner.Report:
    fix = _fix(type(drill)) if fix is None else fix
    return runner.run(drill, watch or _watch(drill), fix, patience=PATIENCE)


def test_a_drill_detects_its_incident_and_runs_the_commands_of_its_page(drill: Drill) -> None:
    report = _run(drill)

    assert report.detected > 0
    assert report.recovered > 0
    written = [" ".join(shlex.split(line)) for line in _commands(_fix(type(drill)))]
    patterns = [runbook.PLACEHOLDER.sub(".+", re.escape(line)) for line in written]
    assert len(patterns) == len(_stage(drill).executed)
    assert all(map(re.fullmatch, patterns, _stage(drill).executed))


def test_a_drill_fails_without_its_alarm(drill: Drill) -> None:
    with pytest.raises(DrillError, match=f"the alarm {drill.alarm} did not fire"):
        _run(drill, DeafWatch(_stage(drill), drill.alarm))


def test_a_drill_fails_with_the_alarm_of_something_else(drill: Drill) -> None:
    with pytest.raises(DrillError, match=f"the alarm {drill.alarm} did not fire; these fire: .*NearQuota"):
        _run(drill, FakeWatch(_stage(drill), "NearQuota"))


def test_a_drill_fails_without_its_fix(drill: Drill) -> None:
    with pytest.raises(DrillError, match=f"the stage did not recover: .*{drill.alarm}"):
        _run(drill, fix=[])


def test_a_drill_fails_without_one_command_of_its_fix(drill: Drill) -> None:
    lines = list(_fix(type(drill)))
    lines.remove(_commands(lines)[-1])
    with pytest.raises(DrillError, match="the stage did not recover"):
        _run(drill, fix=lines)


def test_a_drill_fails_if_another_page_fires(drill: Drill) -> None:
    with pytest.raises(DrillError, match="another page fired: FailedJobs"):
        _run(drill, _watch(drill, also="FailedJobs"))


def test_a_drill_fails_if_a_job_is_lost(drill: Drill) -> None:
    _stage(drill).loses = True
    with pytest.raises(DrillError, match="is lost"):
        _run(drill)


def test_a_drill_fails_if_a_job_has_two_effects(drill: Drill) -> None:
    _stage(drill).doubles = True
    with pytest.raises(DrillError, match="has 2 effects"):
        _run(drill)


def test_a_drill_begins_on_a_healthy_stage_only(drill: Drill) -> None:
    _stage(drill).broken = True
    watch = _watch(drill)
    watch.next()
    with pytest.raises(DrillError, match="the stage is not healthy"):
        _run(drill, watch)


def test_a_restore_submits_no_job_between_its_restore_point_and_its_fix() -> None:
    report = _run(Restore(FakeStage(_fix(Restore))))

    assert report.jobs == 3 * JOBS


def test_a_restore_point_comes_after_the_end_of_earlier_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.drills.traffic.PATIENCE_SECONDS", 0)
    stage = FakeStage(_fix(Restore))
    traffic = Traffic(stage)
    traffic.submit()
    stage.broken = True
    with pytest.raises(WaitError, match="the jobs to end"):
        Restore(stage).begin(traffic)
    stage.sdk.assert_not_called()


def test_a_block_below_another_heading_is_not_found() -> None:
    with pytest.raises(DrillError, match="no block `disabled-publisher` below the heading #dead-jobs"):
        runbook.fix("disabled-publisher", heading="dead-jobs")


def test_every_block_of_the_runbook_belongs_to_a_drill() -> None:
    assert set(runbook.names()) == DRILLS.keys()


def test_every_placeholder_of_a_block_has_a_value(drill: Drill) -> None:
    values = drill.begin(Traffic(drill.stage))

    used = {word for line in _commands(_fix(type(drill))) for word in runbook.PLACEHOLDER.findall(line)}
    assert used == values.keys()
