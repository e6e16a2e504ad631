"""Each drill passes with its alarm and the commands of its page, and fails without either. On a stage in memory."""

import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import timedelta
from io import StringIO
from typing import Final

import pytest
from rich.console import Console

from demo.drills import runbook, runner, speed
from demo.drills.alarm_watch import PAGE
from demo.drills.drill import Drill
from demo.drills.errors import DrillError, SlowMachineError
from demo.drills.incidents import DRILLS
from demo.drills.incidents.disabled_publisher import DisabledPublisher
from demo.drills.incidents.lost_messages import LostMessages
from demo.drills.incidents.poison_flood import PoisonFlood
from demo.drills.incidents.restore import Restore
from demo.drills.table import table
from demo.drills.traffic import JOBS
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
    return made(FakeStage(made.name))


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


def test_a_drill_fails_if_its_incident_does_not_show(drill: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeStage, "status", lambda _: {"parked_lines": [], "overrides": []})
    with pytest.raises(DrillError, match=f"the alarm {drill.alarm} did not fire|`tidemill status` does not show"):
        _run(drill, DeafWatch(_stage(drill), drill.alarm))


@pytest.mark.parametrize("made", [drill for drill in DRILLS.values() if drill.alarm])
def test_a_drill_fails_with_the_alarm_of_something_else(made: type[Drill]) -> None:
    drill = made(FakeStage(made.name))
    with pytest.raises(DrillError, match=f"the alarm {drill.alarm} did not fire; these fire: .*NearQuota"):
        _run(drill, FakeWatch(_stage(drill), "NearQuota"))


def test_a_drill_fails_without_its_fix(drill: Drill) -> None:
    with pytest.raises(DrillError, match=f"the stage did not recover: .*{drill.alarm or PAGE}"):
        _run(drill, fix=[])


@pytest.mark.parametrize(
    ("made", "line"),
    [(drill, line) for drill in DRILLS.values() for line in _commands(_fix(drill))],
    ids=[f"{drill.name} {line}" for drill in DRILLS.values() for line in _commands(_fix(drill))],
)
@pytest.mark.parametrize("instead", [[], ["tidemill status"]], ids=["dropped", "replaced"])
def test_a_drill_fails_without_one_command_of_its_fix(made: type[Drill], line: str, instead: list[str]) -> None:
    drill, lines = made(FakeStage(made.name)), list(_fix(made))
    number = lines.index(line)
    lines[number : number + 1] = instead
    with pytest.raises(DrillError, match=r"the stage did not recover|still fire"):
        _run(drill, fix=lines)


@pytest.mark.parametrize("made", [PoisonFlood, Restore])
def test_a_drill_fails_without_the_deployment_of_its_fix(made: type[Drill]) -> None:
    lines = [line for line in _fix(made) if not line.startswith(runner.DEPLOY)]
    with pytest.raises(DrillError, match="the stage did not recover"):
        _run(made(FakeStage(made.name)), fix=lines)


def test_a_drill_fails_if_its_commands_come_in_another_order() -> None:
    lines = [line for line in _fix(LostMessages) if not line.startswith("#")]
    with pytest.raises(DrillError, match="the stage did not recover"):
        _run(LostMessages(FakeStage(LostMessages.name)), fix=lines[::-1])


def test_the_table_leaves_nothing_out_in_a_narrow_terminal() -> None:
    report = _run(LostMessages(FakeStage(LostMessages.name)))
    console = Console(width=80, record=True, file=StringIO())
    console.print(table([report], minute_seconds=3))
    assert "\u2026" not in console.export_text()


def test_a_report_names_the_other_pages_that_the_drill_allows(drill: Drill) -> None:
    allowed = min(drill.pages, default="")
    report = _run(drill, _watch(drill, also=allowed))

    assert report.other_pages == drill.pages & {allowed}
    console = Console(width=200, record=True, file=StringIO())
    console.print(table([report], minute_seconds=3))
    (row,) = [line for line in console.export_text().splitlines() if drill.name in line]
    assert row.split("│")[-2].strip() == (allowed or "none")


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


def test_a_drill_breaks_nothing_on_a_machine_that_is_too_slow_for_its_alarm(drill: Drill) -> None:
    _stage(drill).canary_takes = timedelta(minutes=speed.ALLOWED_MINUTES, seconds=1)
    with pytest.raises(
        SlowMachineError, match=r"too slow for the drill: a canary took 181 s.* allows 180 s.* MINUTE=121"
    ):
        _run(drill)
    _stage(drill).sdk.assert_not_called()
    assert len(drill.traffic) == 0


def test_a_drill_runs_on_a_machine_that_is_just_fast_enough_for_its_alarm(drill: Drill) -> None:
    _stage(drill).canary_takes = timedelta(minutes=speed.ALLOWED_MINUTES)
    assert _run(drill).other_pages == frozenset()


def test_a_canary_that_does_not_get_through_shows_a_machine_that_is_too_slow(drill: Drill) -> None:
    _stage(drill).canary_takes = None
    with pytest.raises(SlowMachineError, match="a canary took 240 s or longer"):
        _run(drill)


def test_a_drill_tells_another_page_from_a_machine_that_has_become_slow() -> None:
    stage = FakeStage(DisabledPublisher.name)

    class Slowed(DisabledPublisher):
        def begin(self) -> Mapping[str, str]:
            stage.canary_takes = timedelta(minutes=5)
            return super().begin()

    drill = Slowed(stage)
    with pytest.raises(SlowMachineError, match="another page fired: LateStarts; this machine is too slow"):
        _run(drill, _watch(drill, also="LateStarts"))


def test_a_restore_submits_no_job_between_its_restore_point_and_its_fix() -> None:
    report = _run(Restore(FakeStage(Restore.name)))

    assert report.jobs == 3 * JOBS


def test_a_restore_point_comes_after_the_end_of_earlier_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.drills.traffic.PATIENCE_SECONDS", 0)
    stage = FakeStage(Restore.name)
    drill = Restore(stage)
    drill.traffic.submit()
    stage.broken = True
    with pytest.raises(WaitError, match="the jobs to end"):
        drill.begin()
    stage.sdk.assert_not_called()


def test_a_block_below_another_heading_is_not_found() -> None:
    with pytest.raises(DrillError, match="no block `disabled-publisher` below the heading #dead-jobs"):
        runbook.fix("disabled-publisher", heading="dead-jobs")


def test_every_block_of_the_runbook_belongs_to_a_drill() -> None:
    assert set(runbook.names()) == DRILLS.keys()


def test_every_placeholder_of_a_block_has_a_value(drill: Drill) -> None:
    values = drill.begin()

    used = {word for line in _commands(_fix(type(drill))) for word in runbook.PLACEHOLDER.findall(line)}
    assert used == values.keys()
