"""A transaction that includes a running job refuses the writes of its run for a moment, even if it is cancelled itself.

A submission with the key of the job makes one, such as to a group, and so does a parent with that follow-up job.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import INVOCATION, NOW, a_job_type, brought_to, reference_to, stored, types_of
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.single_job import Clock, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.attempt.run import Run
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.dynamodb.groups import groups
from tidemill.dynamodb.job_store import DynamoJobStore

Carried = Callable[[Callable[[Any, Run], Any]], Report]
_CONFLICTS = (Fault.IN_CONFLICT, Fault.REPEAT_IN_CONFLICT)


@pytest.fixture
def queued(store: DynamoJobStore) -> Job:
    return brought_to(store, State.QUEUED)


@pytest.fixture
def carried(store: DynamoJobStore, clock: Clock, queued: Job) -> Carried:
    """One attempt, of a type that allows one."""

    def carried(handler: Callable[[Any, Run], Any]) -> Report:
        context = tools(store, types_of(a_job_type(handler, max_attempts=1)), clock)
        return carried_out(Attempt(reference_to(queued), context, deadline=NOW + INVOCATION))

    return carried


@pytest.mark.parametrize("fault", _CONFLICTS)
@pytest.mark.parametrize("save", ["checkpoint", "step"])
def test_a_conflict_while_a_run_saves_something_costs_nothing(
    client: FaultyClient, carried: Carried, save: str, fault: Fault
) -> None:
    def handler(_payload: Any, run: Run) -> None:
        client.faults = [fault]
        if save == "step":
            run.step("ship", dict)
        else:
            run.checkpoint({"page": 1}, done=1)

    assert carried(handler).ending is Ending.SUCCEEDED


@pytest.mark.parametrize("fault", _CONFLICTS)
def test_a_conflict_at_a_claim_starts_the_run_all_the_same(
    client: FaultyClient, carried: Carried, fault: Fault
) -> None:
    client.faults = [fault]

    assert carried(lambda _payload, _run: None).ending is Ending.SUCCEEDED


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conflict is believed to last after the first."""
    monkeypatch.setattr(groups, "TRIED_FOR", timedelta(0))


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("fault", _CONFLICTS)
def test_a_claim_in_a_lasting_conflict_uses_up_no_attempt(
    store: DynamoJobStore, client: FaultyClient, carried: Carried, queued: Job, fault: Fault
) -> None:
    client.faults = [fault]

    assert carried(lambda _payload, _run: None).ending is Ending.UNAVAILABLE

    job = stored(store, queued)
    assert (job.attempt, job.lease.owner) == (0, None)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("save", ["checkpoint", "step"])
def test_a_run_that_cannot_save_for_a_lasting_conflict_is_held(
    store: DynamoJobStore, client: FaultyClient, carried: Carried, queued: Job, save: str
) -> None:
    """Also if the handler goes on after a step that was not recorded: the next run could not tell."""

    def handler(_payload: Any, run: Run) -> None:
        client.faults = [Fault.IN_CONFLICT]
        if save == "step":
            with suppress(TransactionConflictError):
                run.step("ship", dict)
        else:
            run.checkpoint({"page": 1}, done=1)

    report = carried(handler)

    job = stored(store, queued)
    assert (report.ending, job.attempt, job.holds.cause) == (Ending.HELD, 0, HoldCause.OUTAGE)
