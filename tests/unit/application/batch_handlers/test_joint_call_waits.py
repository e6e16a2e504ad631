"""How long the jobs of batch handlers wait for each other at most."""

import time
from typing import Any

import pytest

from tests.support.builders import a_job, a_job_type, types_of
from tests.support.joint_batch import Handler, a_called
from tests.support.patience import PATIENCE_SECONDS
from tests.support.single_job import Clock, tools
from tidemill.application.batch_handlers import joint_calls
from tidemill.application.batch_handlers.joint_calls import JointCalls
from tidemill.in_memory.single_job import OneJob


def test_a_job_waits_a_second_for_claims_and_half_a_second_for_outcomes() -> None:
    waits = joint_calls.LONGEST_WAIT_FOR_CLAIMS_SECONDS, joint_calls.LONGEST_WAIT_FOR_OUTCOMES_SECONDS

    assert waits == (1, 0.5)


@pytest.mark.parametrize(
    ("default", "given"),
    [(0.01, {}), (0.01, {"longest_wait_seconds": None}), (PATIENCE_SECONDS, {"longest_wait_seconds": 0.01})],
)
def test_a_call_begins_without_those_that_do_not_come_in_time(
    default: float, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint_calls, "LONGEST_WAIT_FOR_CLAIMS_SECONDS", default)
    context = tools(OneJob(a_job()), types_of(a_job_type()), Clock())  # type: ignore[arg-type]  # it needs less
    calls = JointCalls(context, participants=2, **given)
    began = time.monotonic()

    assert calls.participants[0].call(a_called(Handler().type(), 1)) == 2
    assert calls.participants[1].call(a_called(Handler().type(), 2)) == 4
    assert time.monotonic() - began < PATIENCE_SECONDS
