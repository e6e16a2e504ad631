"""`redrive` by two operators at once, interrupted and repeated, and its rule for DLQ messages."""

import threading
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
from click.testing import Result

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW, brought_to, claimed, letter_for, reference_to
from tidemill.aws import clients
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.operator.verified_caller import verified_caller
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue
from tidemill.system import clock


@pytest.mark.usefixtures("interactive")
def test_each_of_two_operators_sees_how_many_jobs_the_other_redrove_first(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second operator redrives some jobs while the first has not confirmed."""
    mine = [cloud.dead_job(type="mine") for _ in range(3)]
    theirs = [cloud.dead_job(type="theirs") for _ in range(2)]
    others: list[Result] = []

    def ask(*_: object, **__: object) -> bool:
        others.append(run("redrive", "--type", "theirs", "--yes"))
        return True

    monkeypatch.setattr("tidemill.cli.confirm.click.confirm", ask)
    result = run("redrive", "--all")
    assert "Redrove 2 of 2 jobs." in others[0].stdout
    assert "Redrove 3 of 5 jobs. Skipped 2 jobs that changed in the meantime." in result.stdout
    assert result.exit_code == 0
    by = verified_caller(clients.sts())
    reasons = [line for line in result.stderr.splitlines() if line.startswith("Skipped")]
    assert sorted(reasons) == sorted(f"Skipped {job.id}: {by} has redriven it in the meantime" for job in theirs)
    for job in mine + theirs:
        found = cloud.store.get(job.tenant, job.id)
        assert found is not None
        assert (found.state, found.generation, len(found.redrives)) == (State.QUEUED, job.generation + 1, 1)
    assert cloud.bodies() == []


class Interrupting:
    """Allows `after` redrives, then raises `error`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int, error: BaseException) -> None:
        self._lock = threading.Lock()
        self._left = after
        self._error = error
        self._redrive = DynamoJobStore.redrive
        interrupting = self

        def redrive(store: DynamoJobStore, job: Job, *, token: str, now: datetime, by: str, reason: str = "") -> Job:
            with interrupting._lock:
                interrupting._left -= 1
                if interrupting._left < 0:
                    raise interrupting._error
            return interrupting._redrive(store, job, token=token, now=now, by=by, reason=reason)

        monkeypatch.setattr(DynamoJobStore, "redrive", redrive)


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (StoreUnavailableError("the table is throttled"), 1)]
)
def test_an_interruption_reports_the_count_and_a_repeat_finishes(cloud: Cloud, error: BaseException, code: int) -> None:
    jobs = [cloud.dead_job() for _ in range(20)]
    with pytest.MonkeyPatch.context() as patch:
        Interrupting(patch, 4, error)
        result = run("redrive", "--all", "--yes")
    assert result.exit_code == code
    assert "Redrove 4 of 20 jobs. Each job is either dead or redriven." in result.stderr
    assert not result.stdout
    assert Counter(cloud.state(job) for job in jobs) == {State.QUEUED: 4, State.DEAD: 16}
    again = run("redrive", "--all", "--yes")
    assert again.stdout.splitlines() == ["Redrove 16 of 16 jobs.", "DLQ messages: 20 deleted, 0 nudged, 0 kept."]
    assert {cloud.state(job) for job in jobs} == {State.QUEUED}
    assert cloud.bodies() == []


def test_an_interruption_during_the_sweep_keeps_the_dlq_messages(cloud: Cloud) -> None:
    kept = [cloud.dead_job(type="kept") for _ in range(3)]
    cloud.dead_job(type="redriven")

    def interrupted(*_: object) -> Any:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqsDeadLetterQueue, "delete", interrupted)
        result = run("redrive", "--type", "redriven", "--yes")
    assert result.exit_code == 130
    assert "Redrove 1 of 1 job. Each job is either dead or redriven." in result.stderr
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
    result = run("redrive", "--type", "none", "--yes")
    assert result.stdout.splitlines()[-1] == "DLQ messages: 7 deleted, 1 nudged, 2 kept."
    nudged = cloud.store.get(stranded.tenant, stranded.id)
    assert nudged is not None
    assert nudged.nudged_at == clock.now()
    assert len(cloud.bodies()) == 2


def test_a_dlq_message_of_a_newer_version_is_kept(cloud: Cloud) -> None:
    cloud.write('{"schema": 99}')
    result = run("redrive", "--all", "--yes")
    assert result.exit_code == 0
    assert "DLQ messages: 0 deleted, 0 nudged, 1 kept." in result.stdout
    assert cloud.bodies() == ['{"schema": 99}']
