"""Ten handlers that run side by side: each line that one logs or prints carries its own job's fields."""

import json
import logging
import threading
from typing import Any

import pytest

from tests.support.deployed_functions import Context, Mill
from tests.support.patience import PATIENCE_SECONDS
from tidemill import Run

BATCH = 10


def test_each_line_of_a_batch_carries_the_fields_of_its_own_job(mill: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    barrier = threading.Barrier(BATCH, timeout=PATIENCE_SECONDS)

    def handler(payload: Any, run: Run) -> None:
        for line in range(3):
            barrier.wait()
            print(f"{run.job_id} printed {line}")  # noqa: T201
            run.log.info("%s reported %d", run.job_id, line)
            logging.getLogger("library").warning("%s logged %d", run.job_id, line, extra={"n": payload.n})

    mill.script.handler = handler
    job_ids = {mill.accepted({"n": number}) for number in range(BATCH)}
    mill.publish()
    event = mill.receive()
    capsys.readouterr()

    mill.work(event, Context(aws_request_id="request-1"))

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    written = [line for line in lines if str(line.get("message", "")).endswith(("0", "1", "2"))]
    assert len(written) == BATCH * 3 * 3
    for line in written:
        assert line["message"].startswith(line["job_id"])
        assert (line["job_type"], line["lane"], line["attempt"], line["generation"]) == (
            "test.scripted",
            "default",
            1,
            1,
        )
        assert line["request_id"] == "request-1"
    assert {line["job_id"] for line in written} == job_ids
