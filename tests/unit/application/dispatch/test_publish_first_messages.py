"""What publish sends where submissions and workers send first messages themselves."""

import pytest

from tests.support.builders import NOW, SECOND, a_job, reference_to, with_changes
from tests.support.publish_world import World
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.errors import (
    StoreUnavailableError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import Lane

JOBS = [a_job() for _ in range(3)]
RUNNING = replace(JOBS[0], state=State.RUNNING)
AGAIN = replace(JOBS[0], state=State.RETRYING, generation=2)
CHANGES = [Change(str(number), None, job) for number, job in enumerate(JOBS)]


@pytest.fixture
def world() -> World:
    return World(first_message_lanes=[Lane.DEFAULT])


def test_a_job_that_has_begun_by_the_message_of_its_submission_gets_no_other(world: World) -> None:
    world.groups.found = [replace(JOBS[0], state=State.RUNNING, attempt=1), JOBS[1]]

    published = world.publish(*CHANGES)

    assert world.groups.reads == [[(job.tenant, job.id) for job in JOBS]]
    assert [sent.body for sent in published.sent] == [reference_to(job) for job in JOBS[1:]]
    assert published.failed == []


def test_without_the_answer_of_the_store_each_new_job_gets_its_message(world: World) -> None:
    world.groups.found = StoreUnavailableError("throttled")

    assert [sent.body for sent in world.publish(*CHANGES).sent] == [reference_to(job) for job in JOBS]


@pytest.mark.parametrize(
    "change",
    [
        Change("1", None, a_job(lane=Lane.BULK)),
        Change("1", None, a_job(group="parcels")),
        Change("1", None, a_job(due=NOW + 5 * SECOND)),
        Change("1", RUNNING, replace(AGAIN, due=NOW + 5 * SECOND)),
        Change("1", RUNNING, with_changes(AGAIN, group="parcels")),
        Change("1", RUNNING, with_changes(JOBS[0], state=State.RETRYING, nudged_at=NOW)),
        Change("1", JOBS[0], with_changes(JOBS[0], nudged_at=NOW)),
        Change("1", replace(JOBS[0], state=State.SCHEDULED), JOBS[0]),
    ],
    ids=["other lane", "group", "delayed", "backoff", "run of a group", "lost run", "nudge", "wake"],
)
def test_publish_reads_only_jobs_whose_writer_may_have_sent_a_message(world: World, change: Change) -> None:
    assert len(world.publish(change).sent) == 1
    assert world.groups.reads == []


@pytest.mark.parametrize(
    ("found", "sent"),
    [
        (replace(AGAIN, state=State.RUNNING, attempt=2), []),
        (replace(AGAIN, state=State.SUCCEEDED, due=None), []),
        (replace(AGAIN, generation=3), []),
        (AGAIN, [reference_to(AGAIN)]),
        (RUNNING, [reference_to(AGAIN)]),
        (None, [reference_to(AGAIN)]),
    ],
    ids=["runs", "has ended", "is to run once more", "waits", "is another job", "is gone"],
)
def test_a_next_run_that_has_begun_by_the_message_of_its_worker_gets_no_other(
    world: World, found: Job | None, sent: list[Reference]
) -> None:
    world.groups.found = [found] if found else []

    published = world.publish(Change("1", RUNNING, AGAIN))

    assert world.groups.reads == [[(AGAIN.tenant, AGAIN.id)]]
    assert [each.body for each in published.sent] == sent


def test_publish_reads_a_job_with_two_changes_once_and_judges_each(world: World) -> None:
    world.groups.found = [replace(AGAIN, state=State.RUNNING, generation=1), *JOBS[1:]]

    published = world.publish(Change("0", None, JOBS[0]), Change("9", RUNNING, AGAIN))

    assert world.groups.reads == [[(AGAIN.tenant, AGAIN.id)]]
    assert [each.body for each in published.sent] == [reference_to(AGAIN)]
