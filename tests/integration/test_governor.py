"""The governor of the level of strain, in the functions as they are deployed."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.support.deployed_functions import Mill, forget
from tidemill import composition
from tidemill.domain.governor import FALLS_AFTER
from tidemill.domain.strain import NO_STRAIN
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
    governor = composition.governor()
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


def test_a_stage_without_a_target_reads_and_writes_nothing_for_it(mill: Mill) -> None:
    mill.read_configuration()
    mill.accepted()
    mill.run()
    mill.wake()

    assert composition.governor() is None
    assert all("!strain" not in str(item) for item in mill.table.client.scan(TableName=mill.table.name)["Items"])
