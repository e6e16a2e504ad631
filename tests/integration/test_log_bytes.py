"""What a successful job costs in log bytes, from its submission to its settle, with its metrics."""

import json
from functools import cache

import pytest

from demo.figures import log_bytes
from tests.support.deployed_functions import Context, Mill
from tidemill.entrypoints import work
from tidemill.names import Env
from tidemill.telemetry import outcome_log, run_lines

LARGEST_BYTES = 1536


@pytest.mark.parametrize("number", [1, 10])
def test_a_successful_job_writes_a_kilobyte_and_a_half_at_most(
    mill: Mill, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setenv(Env.CODE_VERSION, "0" * 7)
    work.worker.cache_clear()
    ids = {mill.accepted(job_type="test.noop") for _ in range(number)}
    mill.publish()
    mill.work(mill.receive(), Context(aws_request_id="0" * 36))

    written = capsys.readouterr().out
    lines = [json.loads(line) for line in written.splitlines()]
    for message in ("accepted", "dispatched", "claimed", "succeeded"):
        assert {line["job_id"] for line in lines if line["message"] == message} == ids
    assert len(written.encode()) / number <= LARGEST_BYTES


def test_the_figure_stays_within_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = cache(outcome_log.new_logger)
    for module in (outcome_log, run_lines, log_bytes):
        monkeypatch.setattr(module, "logger", logger)

    measured = log_bytes.measure()

    assert measured["a successful job"] <= LARGEST_BYTES
    assert measured["a failed attempt, claimed and retrying"] <= 2048
