"""The first message for a run, which a submission or the worker of the last run sends as a hint."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tests.support.builders import NOW, SECOND, a_job, reference_to, with_changes
from tests.support.configurations import configured, paused
from tests.support.single_job import Clock
from tidemill.application.dispatch.first_messages import REST, FirstMessages
from tidemill.application.ports import Refusal
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.job import Job
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import Lane

JOB = a_job(lane=Lane.CRITICAL)


@dataclass
class Submission:
    """Sends first messages, and plays the queues."""

    configuration: RuntimeConfiguration = NOTHING_SET
    clock: Clock = field(default_factory=Clock)
    refuses: Sequence[Refusal] = ()
    sent: list[Dispatch] = field(default_factory=list)
    calls: int = 0

    def __post_init__(self) -> None:
        self._messages = FirstMessages(
            self, of=[Lane.CRITICAL], clock=self.clock, configuration=lambda: self.configuration
        )

    def of(self, *jobs: Job) -> str | None:
        return self._messages.send(jobs)

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[Refusal]:
        self.calls += 1
        self.sent += dispatches
        return self.refuses


def test_the_message_is_the_one_that_publish_would_send() -> None:
    submission = Submission()

    assert submission.of(JOB, a_job(lane=Lane.BULK)) is None

    assert submission.sent == [Dispatch(lane=Lane.CRITICAL, body=reference_to(JOB), delay_seconds=0)]


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRYING])
def test_the_message_of_a_next_run_has_its_generation(state: State) -> None:
    submission = Submission()
    settled = replace(JOB, state=state, generation=3)

    submission.of(settled)

    assert submission.sent == [Dispatch(lane=Lane.CRITICAL, body=reference_to(settled), delay_seconds=0)]


@pytest.mark.parametrize(
    "job",
    [
        with_changes(JOB, group="parcels"),
        replace(JOB, state=State.SCHEDULED, due=NOW + 1000 * SECOND),
        replace(JOB, due=NOW + SECOND),
        replace(JOB, state=State.WAITING, due=None),
        replace(JOB, state=State.PARKED, generation=2),
        replace(JOB, state=State.RETRYING, generation=2, due=NOW + SECOND),
    ],
    ids=["group", "scheduled", "delayed", "waiting", "parked", "backoff"],
)
def test_a_job_that_may_not_start_now_gets_no_message(job: Job) -> None:
    submission = Submission()

    submission.of(job)

    assert (submission.sent, submission.calls) == ([], 0)


def test_a_paused_job_gets_no_message() -> None:
    submission = Submission(configuration=configured(paused(f"lane={Lane.CRITICAL}")))

    submission.of(JOB)

    assert submission.sent == []


def test_after_a_failure_callers_do_not_wait_for_the_queue_for_a_while() -> None:
    submission = Submission(refuses=[Refusal(0, error="a timeout")])

    assert submission.of(JOB) == "a timeout"
    submission.refuses = ()
    assert submission.of(JOB) is None
    assert len(submission.sent) == 1

    submission.clock.now += REST
    submission.of(JOB)
    assert len(submission.sent) == 2


def test_the_first_error_is_reported() -> None:
    submission = Submission(refuses=[Refusal(0, error="first"), Refusal(1, error="second")])
    assert submission.of(JOB, replace(JOB, id="other")) == "first"
    assert submission.calls == 1
