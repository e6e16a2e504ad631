"""Jobs of a batch handler that one worker gets, and the script of their handler."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest

from tests.support.deployed_functions import Event, Mill
from tests.support.jobs.batched import BatchScript, batch_script
from tests.support.jobs.scripted import Anything
from tests.support.patience import PATIENCE_SECONDS
from tidemill import Run
from tidemill.application.batch_handlers import joint_calls
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.job import Job
from tidemill.sqs import messages

BATCH: Final = 10
TYPE: Final = "test.batched"


def patient_calls(monkeypatch: pytest.MonkeyPatch) -> BatchScript:
    """Threads of a busy machine may be late. The tests of the wait itself set another time."""
    monkeypatch.setattr(joint_calls, "LONGEST_WAIT_FOR_CLAIMS_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(joint_calls, "LONGEST_WAIT_FOR_OUTCOMES_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(batch_script, "handler", BatchScript().handler)
    batch_script.calls.clear()
    return batch_script


def a_batch(mill: Mill, size: int = BATCH, *, job_type: str = TYPE) -> tuple[list[str], Event]:
    job_ids = [mill.accepted({"n": number}, job_type=job_type) for number in range(size)]
    mill.publish()
    return job_ids, mill.receive()


def run_held(mill: Mill, job_ids: list[str]) -> None:
    """Let the time of their holds pass, and run those that go on."""
    mill.late += timedelta(minutes=1)
    going_on = [job for job in jobs_of(mill, job_ids) if not job.state.terminal]
    mill.work(mill.event(*(messages.encode(reference_to(job)) for job in going_on)))


def each(outcome: Callable[[Anything, Run], Any]) -> Callable[[list[Anything], list[Run]], list[Any]]:
    """A handler that decides on each job by itself."""
    return lambda payloads, runs: [outcome(payload, run) for payload, run in zip(payloads, runs, strict=True)]


def jobs_of(mill: Mill, job_ids: list[str]) -> list[Job]:
    return [mill.job(job_id) for job_id in job_ids]
