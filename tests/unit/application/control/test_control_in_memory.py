"""What control asks of the store, and what it answers to each refusal, over jobs in memory."""

from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, with_changes
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.job_filter import JobFilter
from tidemill.domain.errors import NotAllowedNowError, SignalRefusedError, WriteRefusedError
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.job import OWNER, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import BATCH_TYPE, FLOW_TYPE

JOB = a_job(tenant="t", id="j")
DEAD = replace(JOB, state=State.DEAD)


def test_a_cancel_is_that_of_the_owner_unless_another_is_named() -> None:
    jobs = InMemoryJobs(JOB)
    jobs.control().cancel("t", "j")
    assert jobs.writes == [("cancel", "j", {"now": NOW, "by": OWNER, "reason": ""})]


def test_a_cancel_that_the_state_does_not_permit_says_so() -> None:
    done = replace(JOB, state=State.SUCCEEDED)
    jobs = InMemoryJobs(JOB)
    jobs.refusals = [WriteRefusedError("cancel", done)]
    with pytest.raises(NotAllowedNowError, match="a job that is succeeded cannot be cancelled") as refused:
        jobs.control().cancel("t", "j")
    assert refused.value.current == done


@pytest.mark.parametrize(("mark", "refused"), [(Mark.BLOCKED, True), (Mark.SKIPPED, False)])
def test_a_node_that_may_still_start_cannot_be_cancelled_by_itself(mark: Mark, *, refused: bool) -> None:
    node = replace(JOB, state=State.CANCELLED, flow=FlowPlace(id="f", node="n", mark=mark))
    jobs = InMemoryJobs(node)
    if refused:
        with pytest.raises(NotAllowedNowError, match="a blocked node of the flow f, which a redrive starts, cannot be"):
            jobs.control().cancel("t", "j")
    else:
        assert jobs.control().cancel("t", "j") == node
    assert jobs.writes == []


def test_a_job_that_is_deleted_before_its_cancel_is_not_found() -> None:
    jobs = InMemoryJobs(JOB)
    jobs.refusals = [WriteRefusedError("cancel", None)]
    assert jobs.control().cancel("t", "j") is None


@pytest.mark.parametrize(("job_type", "what"), [(BATCH_TYPE, "batch"), (FLOW_TYPE, "flow")])
def test_the_job_of_a_batch_or_flow_takes_no_signal_of_a_caller(job_type: str, what: str) -> None:
    jobs = InMemoryJobs(replace(JOB, type=job_type))
    with pytest.raises(SignalRefusedError) as refused:
        jobs.control().signal("t", "j", "closed", 1)
    assert str(refused.value) == f"the job is that of a {what}, which takes no signals"
    assert jobs.writes == []


@pytest.mark.parametrize("job_type", [BATCH_TYPE, FLOW_TYPE])
def test_a_batch_or_flow_is_closed_or_cancelled_by_a_signal_that_says_true(job_type: str) -> None:
    jobs = InMemoryJobs(replace(JOB, type=job_type))
    assert jobs.control().signal_composite("t", "j", "closed")
    assert jobs.writes == [("signal", "j", "closed", "true", NOW, False)]


@pytest.mark.parametrize("job_type", [BATCH_TYPE, FLOW_TYPE])
def test_a_dead_batch_or_flow_keeps_a_signal_only_if_its_redrive_is_to_have_it(job_type: str) -> None:
    jobs = InMemoryJobs(replace(DEAD, type=job_type))
    with pytest.raises(SignalRefusedError, match="the job is dead, so the signal closed comes too late"):
        jobs.control().signal_composite("t", "j", "closed")
    assert jobs.writes == []
    assert jobs.control().signal_composite("t", "j", "closed", kept_dead=True)


def test_a_job_that_was_found_is_cancelled_as_it_was_read() -> None:
    """Another worker may have begun to run it since: then the filter decides again."""
    jobs = InMemoryJobs(JOB)
    assert jobs.control().cancel_found(JOB, JobFilter(), by="ada", reason="no use")
    assert jobs.writes == [("cancel", "j", {"now": NOW, "by": "ada", "reason": "no use", "as_read": True})]


def test_a_job_that_was_found_and_does_not_match_any_more_is_not_cancelled() -> None:
    jobs = InMemoryJobs(JOB)
    assert not jobs.control().cancel_found(JOB, JobFilter(states=[State.DEAD]), by="ada")
    jobs.refusals = [WriteRefusedError("cancel", replace(JOB, state=State.RUNNING))]
    assert not jobs.control().cancel_found(JOB, JobFilter(states=[State.QUEUED]), by="ada")
    assert jobs.writes == []


def test_a_dead_job_is_redriven_in_the_name_of_its_owner() -> None:
    jobs = InMemoryJobs(DEAD)
    assert jobs.control().redrive("t", "j") == replace(DEAD, state=State.QUEUED, due=NOW)
    assert jobs.writes == [("redrive", "j", {"token": "token", "now": NOW, "by": OWNER})]


@pytest.mark.parametrize("state", [state for state in State if state is not State.DEAD])
def test_a_job_in_any_other_state_cannot_be_redriven(state: State) -> None:
    jobs = InMemoryJobs(replace(JOB, state=state))
    with pytest.raises(NotAllowedNowError, match=f"a job that is {state} cannot be redriven"):
        jobs.control().redrive("t", "j")
    assert jobs.writes == []


class ChangingJobs(InMemoryJobs):
    """The first write is refused, since the job has changed to `after` meanwhile."""

    def __init__(self, before: Job, after: Job | None) -> None:
        super().__init__(before)
        self.refusals = [WriteRefusedError("redrive", after)]
        self._after = after

    def _write(self, *call: Any) -> None:
        if self.refusals:
            self.documents = {} if self._after is None else {("t", "j"): self._after}
        super()._write(*call)


def test_a_job_that_died_again_meanwhile_is_redriven_from_that_death() -> None:
    jobs = ChangingJobs(DEAD, replace(DEAD, generation=2, finished_at=NOW + SECOND))
    redriven = jobs.control().redrive("t", "j")
    assert redriven is not None
    assert redriven.generation == 2
    assert len(jobs.writes) == 1


def test_a_job_that_another_redrove_meanwhile_cannot_be_redriven() -> None:
    with pytest.raises(NotAllowedNowError, match="a job that is queued cannot be redriven"):
        ChangingJobs(DEAD, JOB).control().redrive("t", "j")


@pytest.mark.parametrize("job", [None, with_changes(DEAD, expires_at=NOW), replace(DEAD, tenant="another")])
def test_a_job_that_is_missing_expired_or_of_another_tenant_is_not_found(job: Job | None) -> None:
    jobs = InMemoryJobs(*([job] if job else []))
    control = jobs.control()
    assert (control.find("t", "j"), control.cancel("t", "j"), control.redrive("t", "j")) == (None, None, None)
    assert control.signal("t", "j", "approval", 1) is None
    assert jobs.writes == []
    assert ChangingJobs(DEAD, None).control().redrive("t", "j") is None
