"""A step that one version of the code adds behind the last one, and a retry that another version runs."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.deployed_functions import Mill, forget
from tidemill import Run
from tidemill.application.attempt.attempt_holds import MOST_HOLDS_OF_A_VERSION
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.names import Env
from tidemill.sqs import messages

DAY = timedelta(days=1)


def deploy(mill: Mill, monkeypatch: pytest.MonkeyPatch, version: str, *steps: str, fails: bool = False) -> list[str]:
    """Workers of this version ask for these steps. Returns the steps whose functions they call."""
    called: list[str] = []

    def handler(_payload: Any, run: Run) -> None:
        for name in steps:
            run.step(name, called.append, name)
        if fails:
            raise ValueError("later")

    monkeypatch.setenv(Env.CODE_VERSION, version)
    forget()
    mill.script.handler = handler
    return called


def work(mill: Mill, job_id: str) -> Job:
    """Once, also if the job has to wait before it."""
    mill.late += DAY
    mill.work(mill.event(messages.encode(reference_to(mill.job(job_id)))))
    return mill.job(job_id)


def test_the_older_version_leaves_a_job_with_a_step_that_it_lacks_to_the_newer_one(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = mill.accepted()
    deploy(mill, monkeypatch, "new", "charge", "mail", fails=True)
    work(mill, job)

    called = deploy(mill, monkeypatch, "old", "charge")
    for holds in range(1, 4):
        held = work(mill, job)
        assert (held.attempt, held.holds.count, held.holds.cause) == (1, holds, HoldCause.VERSION)
        assert [step.name for step in held.steps.recorded] == ["charge", "mail"]

    called += deploy(mill, monkeypatch, "new", "charge", "mail")
    assert (work(mill, job).state, called) == (State.SUCCEEDED, [])


def test_after_a_rollback_for_good_the_job_dies_with_both_sequences(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = mill.accepted()
    deploy(mill, monkeypatch, "new", "charge", "mail", fails=True)
    work(mill, job)

    deploy(mill, monkeypatch, "old", "charge")
    for _ in range(MOST_HOLDS_OF_A_VERSION):
        assert work(mill, job).state is not State.DEAD

    dead = work(mill, job)
    assert (dead.state, dead.death, dead.errors[-1].error_class) == (
        State.DEAD,
        DeathReason.PERMANENT,
        "StepsChangedError",
    )
    assert "recorded: charge, mail; asked for: charge" in dead.errors[-1].message


@pytest.mark.parametrize(
    ("version", "steps"), [("new", ["charge"]), ("", ["charge"]), ("old", ["mail"]), ("old", ["charge", "other"])]
)
def test_a_defect_and_steps_that_were_renamed_or_moved_end_the_job_at_once(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, version: str, steps: list[str]
) -> None:
    job = mill.accepted()
    deploy(mill, monkeypatch, "new", "charge", "mail", fails=True)
    work(mill, job)

    deploy(mill, monkeypatch, version, *steps)
    dead = work(mill, job)
    assert (dead.state, dead.errors[-1].error_class) == (State.DEAD, "StepsChangedError")
