"""What a successful job costs in log bytes, from its submission to its settle, with its metrics."""

import json

import pytest

from tests.support.deployed_functions import Context, Mill
from tidemill import composition
from tidemill.names import Env

#: Of lines that carry metrics of one job each. `dispatched` shares those of its batch.
LARGEST_BYTES = 1536
BATCH = 10


def test_a_successful_job_writes_a_kilobyte_and_a_half_at_most(
    mill: Mill, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(Env.CODE_VERSION, "0" * 8)
    composition.worker.cache_clear()
    ids = {mill.accepted(job_type="test.noop") for _ in range(BATCH)}
    mill.publish()
    mill.work(mill.receive(), Context(aws_request_id="0" * 36))

    written = capsys.readouterr().out
    lines = [json.loads(line) for line in written.splitlines()]
    for message in ("accepted", "dispatched", "claimed", "succeeded"):
        assert {line["job_id"] for line in lines if line["message"] == message} == ids
    assert len(written.encode()) / BATCH <= LARGEST_BYTES
