"""The governor of the level of strain, in the functions as they are deployed."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.support.deployed_functions import Mill, forget
from tidemill import composition
from tidemill.application.configuration import Configurator
from tidemill.domain.admission.governor import EXPIRES_AFTER, FALLS_AFTER, GOVERNOR_SETTING
from tidemill.domain.admission.strain import NO_STRAIN
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.foreground import ForegroundLatency
from tidemill.names import Env, Lane

TARGET = timedelta(seconds=2)


@pytest.fixture
def governed(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mill]:
    """The functions of the lane `critical`."""
    urls = json.dumps({Lane.CRITICAL: {"queue": mill.queue, "dead_letters": mill.dead_letters}})
    monkeypatch.setenv(Env.LANES, urls)
    monkeypatch.setenv(Env.FOREGROUND_TARGET, str(TARGET.total_seconds()))
    forget()
    mill.stop_clock()
    yield mill
    forget()


def level() -> int:
    governor = composition.parts().governor
    assert governor is not None
    return governor.settle()


def test_late_starts_shed_sheddable_jobs_until_it_is_calm(governed: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    strained: list[int] = []
    governed.script.handler = lambda _payload, run: strained.append(run.strained)
    for jobs in (6, 2):
        for _ in range(jobs):
            governed.accepted(job_type="test.urgent")
        governed.late += TARGET * 2
        governed.run()

    assert level() == 1
    assert max(strained) == 1
    assert governed.post(job_type="test.extra").status == 503
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (change,) = [line for line in lines if line["message"] == "strain changed"]
    assert (change["strain_before"], change["strain"], change["late"] >= 5) == (0, 1, True)

    governed.late += FALLS_AFTER
    governed.wake()
    assert level() == NO_STRAIN
    written = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["StrainLevel"] for line in written if "StrainLevel" in line] == [0]
    governed.late += timedelta(seconds=10)
    assert governed.post(job_type="test.extra").status == 202


def test_a_governor_that_is_switched_on_again_begins_without_strain(governed: Mill) -> None:
    for jobs in (6, 2):
        for _ in range(jobs):
            governed.accepted(job_type="test.urgent")
        governed.late += TARGET * 2
        governed.run()
    assert level() == 1
    changes = Configurator(
        store=DynamoConfiguration(governed.table.client, table=governed.table.name), clock=governed.now
    )
    until = governed.now() + EXPIRES_AFTER
    changes.set(changes.read(), GOVERNOR_SETTING, {"off": True}, by="arn:ops", reason="a test", until=until)
    governed.late += EXPIRES_AFTER

    assert governed.post(job_type="test.extra").status == 202
    governed.wake()
    assert level() == NO_STRAIN


def test_an_app_reports_its_own_latency(governed: Mill) -> None:
    foreground = ForegroundLatency(governed.table.name, client=governed.table.client, target_seconds=0.5)
    for _ in range(20):
        foreground.report(0.5)
        governed.late += timedelta(seconds=0.1)
    assert level() == NO_STRAIN
    assert "!strain" not in str(governed.table.client.scan(TableName=governed.table.name)["Items"])

    for _ in range(5):
        governed.late += timedelta(seconds=1)
        foreground.report(0.6)

    assert level() == 1
    assert governed.post(job_type="test.extra").status == 503


@pytest.mark.parametrize("seconds", [-0.1, float("nan"), float("inf"), 1e300])
def test_a_time_that_is_not_finite_and_positive_is_refused(mill: Mill, seconds: float) -> None:
    foreground = ForegroundLatency(mill.table.name, client=mill.table.client, target_seconds=1)

    with pytest.raises(ValueError, match=r"must be (0 or more|a number)"):
        foreground.report(seconds)
    with pytest.raises(ValueError, match=r"must be (above 0|a number)"):
        ForegroundLatency(mill.table.name, client=mill.table.client, target_seconds=seconds)


def test_a_stage_without_a_target_reads_and_writes_nothing_for_it(mill: Mill) -> None:
    mill.read_configuration()
    mill.accepted()
    mill.run()
    mill.wake()

    assert composition.parts().governor is None
    assert all("!strain" not in str(item) for item in mill.table.client.scan(TableName=mill.table.name)["Items"])
