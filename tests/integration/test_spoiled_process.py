"""A handler that changes its process: its successors do not notice, or the process ends after the batch."""

import json
import logging
import os
import sys
from typing import Any

import pytest

from tests.support.deployed_functions import Mill, ProcessEndedError
from tidemill.domain.states import State
from tidemill.names import Env
from tidemill.telemetry.line_output import LineOutput


def _spoil(_payload: Any, _run: Any) -> None:
    os.environ.clear()
    sys.stdout.close()
    sys.stderr.close()
    logging.disable(logging.CRITICAL)


def _ordinary(_payload: Any, run: Any) -> str:
    print("printed")  # noqa: T201 - as handlers do
    run.log.warning("logged")
    return os.environ[Env.STAGE]


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_next_job_of_the_process_finds_all_as_it_was(mill: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    spoiler = mill.accepted()
    mill.script.handler = _spoil
    mill.publish()
    mill.work(mill.receive())
    lines = _lines(capsys)
    assert [line["message"] for line in lines if line.get("job_id") == spoiler][-2:] == ["claimed", "succeeded"]
    (restored,) = [line for line in lines if line["message"] == "process restored"]
    assert (restored["job_types"], restored["restored"]) == (["test.scripted"], ["environment variables", "logging"])

    job_id = mill.accepted()
    mill.script.handler = _ordinary
    mill.publish()
    mill.work(mill.receive())

    assert (mill.job(job_id).state, mill.job(job_id).result) == (State.SUCCEEDED, '"test"')
    said = [line["message"] for line in _lines(capsys) if line.get("job_id") == job_id]
    assert {"printed", "logged", "claimed", "succeeded"} <= set(said)


def test_a_process_without_streams_ends_after_its_batch(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def close_files(_payload: Any, _run: Any) -> None:
        monkeypatch.setattr(LineOutput, "intact", lambda _: False)

    job_id = mill.accepted()
    mill.script.handler = close_files
    mill.publish()
    with pytest.raises(ProcessEndedError):
        mill.work(mill.receive())

    assert mill.job(job_id).state is State.SUCCEEDED
    assert [line["lost"] for line in _lines(capsys) if line["message"] == "process spoiled"] == [
        ["files of the standard streams"]
    ]
    assert not mill.receive()["Records"]


def test_no_further_handler_begins_in_a_process_without_streams(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LineOutput, "intact", lambda _: False)
    runs = list[Any]()
    mill.script.handler = lambda payload, _run: runs.append(payload)
    job_id = mill.accepted()
    mill.publish()
    with pytest.raises(ProcessEndedError):
        mill.work(mill.receive())
    job = mill.job(job_id)
    assert (job.state, job.attempt, runs) == (State.QUEUED, 0, [])
