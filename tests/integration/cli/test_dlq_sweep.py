"""`dlq sweep`: the rule for DLQ messages, and an interruption."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.cli.conftest import Cloud, pipeline, run
from tests.support.builders import NOW, brought_to, claimed, letter_for, reference_to
from tidemill.application.ports import Refusal
from tidemill.aws import clients
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import State
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue
from tidemill.system import clock


def test_an_interruption_during_the_sweep_keeps_the_dlq_messages(cloud: Cloud) -> None:
    kept = [cloud.dead_job(type="kept") for _ in range(3)]
    run("redrive", cloud.dead_job().id, "--yes")

    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqsDeadLetterQueue, "delete", interrupted)
        result = run("dlq", "sweep", "--yes")
    assert result.exit_code == 130
    assert len(cloud.bodies()) >= len(kept)


def test_each_dlq_message_is_deleted_nudged_or_kept_by_the_state_of_its_job(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = cloud.dead_job(type="still dead")
    stranded = brought_to(cloud.store, State.QUEUED)
    running = brought_to(cloud.store, State.QUEUED)
    claimed(cloud.store, running, now=NOW + timedelta(hours=1))  # the lease lasts half a minute
    moved_on = brought_to(cloud.store, State.SUCCEEDED)
    gone = reference_to(dead, job_id="gone")
    malformed = ["no json", "[]", "{}", '{"schema": 1, "id": null}', '"\\ud800"']
    for reference in (reference_to(stranded), reference_to(running), gone):
        cloud.write(reference)
    cloud.write(letter_for(moved_on))
    for text in malformed:
        cloud.write(text)
    # The stranded job is long overdue and no worker has started it; the lease of the running job lasts.
    monkeypatch.setattr(clock, "now", lambda: NOW + timedelta(hours=1))
    result = run("dlq", "sweep", "--yes")
    assert result.stdout.splitlines()[-1] == "DLQ messages: 7 deleted, 1 nudged, 2 kept."
    nudged = cloud.store.get(stranded.tenant, stranded.id)
    assert nudged is not None
    assert nudged.nudges.last_at == clock.now()
    assert len(cloud.bodies()) == 2


def test_a_dlq_message_of_a_newer_version_is_kept(cloud: Cloud) -> None:
    cloud.write('{"schema": 99}')
    result = run("dlq", "sweep", "--yes")
    assert result.exit_code == 0
    assert "DLQ messages: 0 deleted, 0 nudged, 1 kept." in result.stdout
    assert cloud.bodies() == ['{"schema": 99}']


def test_it_asks_before_it_changes_anything(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud.write("malformed")
    assert run("dlq", "sweep").exit_code == 2
    monkeypatch.setattr("tidemill.cli.confirm.stdin_is_terminal", lambda: True)
    assert "Process 1 DLQ message? [y/N]" in run("dlq", "sweep", typed="n\n").stderr
    assert cloud.bodies() == ["malformed"]
    assert run("dlq", "sweep", "--json", typed="y\n").stdout.strip().endswith('"kept":0,"failed":0}}')
    assert cloud.bodies() == []


def _a_second_lane(cloud: Cloud, messages: int) -> str:
    """Lane `critical`, which comes first, with messages that cannot be read. The URL of its dead-letter queue."""
    sqs = clients.sqs()
    urls = {name: sqs.create_queue(QueueName=f"critical-{name}")["QueueUrl"] for name in ("queue", "dead_letters")}
    for _ in range(messages):
        sqs.send_message(QueueUrl=urls["dead_letters"], MessageBody="malformed")
    lanes = {"critical": urls, "default": {"queue": cloud.queue, "dead_letters": cloud.dead_letters}}
    cloud.server.stacks[0] = pipeline(cloud.table.name, json.dumps(lanes))
    return urls["dead_letters"]


@pytest.mark.parametrize(
    ("error", "exit_code", "deleted"), [(StoreUnavailableError("no answer"), 1, 11), (KeyboardInterrupt(), 130, 10)]
)
def test_a_lane_that_fails_is_recorded_as_far_as_it_came_and_the_others_are_swept(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, error: BaseException, exit_code: int, deleted: int
) -> None:
    failing = _a_second_lane(cloud, messages=12)
    cloud.write("malformed")
    receive, calls = SqsDeadLetterQueue.receive, Counter[str]()

    def fails_after_a_batch(queue: SqsDeadLetterQueue, **options: Any) -> Any:
        calls[queue._url] += 1
        if queue._url == failing and calls[failing] > 1:
            raise error
        return receive(queue, **options)

    monkeypatch.setattr(SqsDeadLetterQueue, "receive", fails_after_a_batch)
    result = run("dlq", "sweep", "--yes")

    assert result.exit_code == exit_code
    if exit_code == 1:
        assert result.stdout.splitlines()[-1] == "DLQ messages: 11 deleted, 0 nudged, 0 kept."
        assert "not all DLQ messages of critical were processed" in result.stderr
        assert "caused by no answer" in result.stderr
    (entry,) = [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]
    assert (entry["outcome"] == "done", entry["counts"]["deleted"]) == (False, deleted)


def test_a_message_that_cannot_be_processed_fails_the_command(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal(index=0, error="InternalError", sender_fault=False)
    monkeypatch.setattr(SqsDeadLetterQueue, "delete", lambda _queue, _dead_letters: [refusal])
    cloud.write("malformed")

    result = run("dlq", "sweep", "--yes")

    assert result.exit_code == 1
    assert "Error: 1 message could not be processed" in result.stderr
    (entry,) = [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]
    assert (entry["outcome"] == "done", entry["counts"]["failed"]) == (False, 1)
