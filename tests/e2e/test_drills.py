"""A drill on the embedded AWS passes with the commands of the runbook, and fails without them."""

from collections.abc import Iterator
from typing import Final

import pytest

from demo.drills import runbook, runner, speed
from demo.drills.alarm_watch import AlarmLog
from demo.drills.embedded_stage import EmbeddedStage, watched
from demo.drills.errors import DrillError
from demo.drills.incidents.disabled_publisher import DisabledPublisher
from tidemill.local.lifecycle import App

#: Long enough for what happens in a minute beside other tests, whose load must not fire another page.
MINUTE_SECONDS: Final = 5
#: Evaluations in which a stage does not recover by itself.
PATIENCE: Final = 8


@pytest.fixture(scope="module")
def watch(app: App) -> Iterator[AlarmLog]:
    with watched(app, minute_seconds=MINUTE_SECONDS) as watch:
        yield watch


@pytest.fixture
def drill(app: App, monkeypatch: pytest.MonkeyPatch) -> Iterator[DisabledPublisher]:
    # The other tests slow down the machine, which cannot fail this drill: its own alarm is that of late canaries.
    monkeypatch.setattr(speed, "slowness", lambda *_: "")
    stage = EmbeddedStage(app)
    yield DisabledPublisher(stage)
    stage.client("lambda").update_event_source_mapping(UUID=stage.mapping("publish"), Enabled=True)


def test_a_drill_ends_an_incident_with_the_commands_of_the_runbook(drill: DisabledPublisher, watch: AlarmLog) -> None:
    report = runner.run(drill, watch, runbook.fix(drill.name, heading=drill.heading))

    assert report.jobs == 15


def test_a_drill_fails_without_the_commands_of_the_runbook(drill: DisabledPublisher, watch: AlarmLog) -> None:
    with pytest.raises(DrillError, match=r"the stage did not recover: .*LateCanary.* fire; job .* is queued"):
        runner.run(drill, watch, (), patience=PATIENCE)
