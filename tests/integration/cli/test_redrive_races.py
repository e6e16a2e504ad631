"""`redrive` by two operators at once, interrupted and repeated."""

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from click.testing import Result

from tests.integration.cli.conftest import Cloud, run
from tidemill.aws import clients
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.operator.verified_caller import verified_caller


def test_each_of_two_operators_sees_how_many_jobs_the_other_redrove_first(
    cloud: Cloud,
) -> None:
    """The second operator redrives some jobs after the first has read them."""
    mine = [cloud.dead_job(type="mine") for _ in range(3)]
    theirs = [cloud.dead_job(type="theirs") for _ in range(2)]
    others: list[Result] = []

    def read(jobs: Iterable[Job]) -> list[Job]:
        found = list(jobs)
        patch.undo()
        others.append(run("redrive", "--type", "theirs", "--no-probe", "--yes"))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemill.cli.control.redrive_run.in_group_order", read)
        result = run("redrive", "--all", "--no-probe", "--yes")
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


class Interrupting:
    """Allows `after` redrives, then raises `error`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int, error: BaseException) -> None:
        self._lock = threading.Lock()
        self._left = after
        self._error = error
        self._redrive = DynamoJobStore.redrive
        interrupting = self

        def redrive(store: DynamoJobStore, job: Job, **how: Any) -> Job:
            with interrupting._lock:
                interrupting._left -= 1
                if interrupting._left < 0:
                    raise interrupting._error
            return interrupting._redrive(store, job, **how)

        monkeypatch.setattr(DynamoJobStore, "redrive", redrive)


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (StoreUnavailableError("the table is throttled"), 1)]
)
def test_an_interruption_reports_the_count_and_a_repeat_finishes(cloud: Cloud, error: BaseException, code: int) -> None:
    jobs = [cloud.dead_job() for _ in range(20)]
    with pytest.MonkeyPatch.context() as patch:
        Interrupting(patch, 4, error)
        result = run("redrive", "--all", "--no-probe", "--yes")
    assert result.exit_code == code
    assert "Redrove 4 of 20 jobs. Each job is either dead or redriven," in result.stderr
    assert not result.stdout
    assert Counter(cloud.state(job) for job in jobs) == {State.QUEUED: 4, State.DEAD: 16}
    again = run("redrive", "--all", "--no-probe", "--yes")
    assert again.stdout.splitlines() == ["Redrove 16 of 16 jobs."]
    assert {cloud.state(job) for job in jobs} == {State.QUEUED}
