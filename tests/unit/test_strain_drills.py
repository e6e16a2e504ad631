"""What the drills about strain ask besides their alarm: refusals, jobs of others that begin soon, and few calls."""

import contextlib
from collections.abc import Sequence
from typing import Final

import pytest

from demo.drills import runbook, runner
from demo.drills.drill import Drill
from demo.drills.errors import DrillError
from demo.drills.incidents.downstream_down import DownstreamDown
from demo.drills.incidents.downstream_slow import DownstreamSlow
from demo.drills.incidents.foreground_strained import ForegroundStrained
from demo.drills.incidents.tenant_flood import EACH_MINUTE, FIRST, TenantFlood
from tests.support.fake_stage import FakeStage, FakeWatch
from tidemill.local.wait import WaitError

#: Evaluations.
PATIENCE: Final = 8


def _run(drill: Drill, *, fix: Sequence[str] | None = None) -> runner.Report:
    assert isinstance(drill.stage, FakeStage)
    fix = runbook.fix(drill.name, heading=drill.heading) if fix is None else fix
    return runner.run(drill, FakeWatch(drill.stage, drill.alarm), fix, patience=PATIENCE)


@pytest.mark.parametrize(
    ("made", "text"),
    [(TenantFlood, "not refused with 429 and Retry-After"), (ForegroundStrained, "no job was refused with 503")],
)
def test_a_drill_fails_if_the_flood_is_not_refused(made: type[Drill], text: str) -> None:
    stage = FakeStage(made.name)
    stage.refuses = False
    with pytest.raises(DrillError, match=text):
        _run(made(stage))


@pytest.mark.parametrize("made", [TenantFlood, DownstreamDown, ForegroundStrained])
def test_a_drill_fails_if_the_jobs_of_others_begin_late(made: type[Drill]) -> None:
    stage = FakeStage(made.name)
    stage.late = True
    with pytest.raises(DrillError, match="began 60 s late"):
        _run(made(stage))


def test_a_flood_goes_on_until_the_end() -> None:
    drill = TenantFlood(FakeStage(TenantFlood.name))
    _run(drill)

    assert len(drill.traffic) > FIRST + EACH_MINUTE


def test_a_drill_fails_if_the_service_is_called_too_often() -> None:
    stage = FakeStage(DownstreamDown.name)
    stage.service.failures = 40
    with pytest.raises(DrillError, match="40 calls failed, which is more than"):
        _run(DownstreamDown(stage))


def test_a_drill_fails_if_the_service_is_called_while_its_breaker_is_forced_open() -> None:
    drill = DownstreamDown(stage := FakeStage(DownstreamDown.name))
    ended = drill.cause_has_ended

    def called() -> bool:
        stage.service.failures += 1
        return ended()

    drill.cause_has_ended = called  # type: ignore[method-assign]
    with pytest.raises(DrillError, match="3 calls while the breaker was forced open"):
        _run(drill)


def test_a_drill_fails_if_a_slow_service_refuses_many_calls() -> None:
    stage = FakeStage(DownstreamSlow.name)
    stage.service.failures = 40
    with pytest.raises(DrillError, match="the service refused 40 of"):
        _run(DownstreamSlow(stage))


def test_a_drill_fails_if_a_setting_helps_little() -> None:
    stage = FakeStage(DownstreamSlow.name)
    stage.service.served_with_setting = 1
    with pytest.raises(DrillError, match="3 calls succeeded in 3 minutes, and 3 with the setting"):
        _run(DownstreamSlow(stage))


def test_a_drill_fails_if_jobs_are_refused_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.drills.incidents.foreground_strained.ACTS_WITHIN_SECONDS", 0)
    stage = FakeStage(ForegroundStrained.name)
    stage.refused_after = True
    with pytest.raises(WaitError, match=r"a job of demo\.preview to be accepted again"):
        _run(ForegroundStrained(stage))


def test_a_drill_fails_if_a_setting_remains() -> None:
    stage = FakeStage(DownstreamSlow.name)
    stage.overrides.append({"type": "demo.ship", "option": "concurrency_per_key"})
    with pytest.raises(DrillError, match=r"an option of demo\.ship is still set"):
        _run(DownstreamSlow(stage))


@pytest.mark.parametrize("fix", [(), None])
def test_a_drill_ends_its_service(fix: tuple[str, ...] | None) -> None:
    drill = DownstreamDown(stage := FakeStage(DownstreamDown.name))
    with contextlib.suppress(DrillError):
        _run(drill, fix=fix)
    assert stage.service.closed
