"""Jobs that outlive their invocations, through the deployed functions, and the page that documents them."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from stacks.stages import STAGES
from tests.support.deployed_functions import Context, Mill
from tests.support.documented_job_types import job_types_of
from tidemill import CancelRequestedError, Continue, composition
from tidemill.application.attempt.handler_results import LARGEST_CHECKPOINT_BYTES
from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType
from tidemill.application.ports import Checkpoint
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.testing import Drive, State, run_job

STEPS = 7


def stepping(*, per_run: int) -> Any:
    """A handler that takes so many steps in each run."""

    def handler(_payload: Any, run: Run) -> Any:
        done = run.resumed_from or 0
        for _ in range(per_run):
            done += 1
            run.checkpoint(done, done=done, total=STEPS)
            if done == STEPS:
                return {"steps": done}
        return Continue(done)

    return handler


def worked(mill: Mill) -> None:
    """One message through one invocation."""
    assert mill.publish() == []
    mill.work(mill.receive())


def test_a_job_goes_on_over_invocations_and_shows_how_far_it_is(mill: Mill) -> None:
    mill.script.handler = stepping(per_run=3)
    job_id = mill.accepted()
    shown = []
    while mill.get(job_id).body["state"] != "succeeded":
        worked(mill)
        body = mill.get(job_id).body
        shown.append((body["progress"]["done"], body["progress"]["total"], body["hops"], body["checkpoint"]))
    assert shown == [(3, 7, 1, 3), (6, 7, 2, 6), (7, 7, 2, 7)]
    assert (body["result"], body["attempt"], body["errors"]) == ({"steps": 7}, 1, [])


def test_a_run_that_fails_is_resumed_from_its_last_checkpoint(mill: Mill) -> None:
    resumed: list[Any] = []

    def handler(_payload: Any, run: Run) -> Any:
        resumed.append(run.resumed_from)
        run.checkpoint({"page": len(resumed)}, done=len(resumed))
        if len(resumed) < 3:
            raise ConnectionError("not now")
        return "done"

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()
    assert resumed == [None, {"page": 1}, {"page": 2}]
    assert mill.get(job_id).body["state"] == "succeeded"


def test_a_worker_that_dies_leaves_its_last_checkpoint_to_the_next(mill: Mill) -> None:
    mill.script.handler = stepping(per_run=STEPS)
    job_id = mill.accepted()
    store = composition.parts().store
    killed = store.claim(
        reference_to(mill.job(job_id)), token="killed", now=mill.now(), lease_end=mill.now() + timedelta(seconds=1)
    )
    store.checkpoint(killed, Checkpoint(state="5", done=5, total=STEPS), now=mill.now())
    mill.late = timedelta(seconds=5)
    resumed: list[Any] = []

    def handler(payload: Any, run: Run) -> Any:
        resumed.append(run.resumed_from)
        return stepping(per_run=STEPS)(payload, run)

    mill.script.handler = handler
    mill.run()
    assert resumed == [5]
    body = mill.get(job_id).body
    assert (body["state"], body["attempt"], body["progress"]["done"]) == ("succeeded", 2, 7)


def test_attempts_begin_anew_with_each_continuation(mill: Mill) -> None:
    attempts: list[int] = []

    def handler(_payload: Any, run: Run) -> Any:
        attempts.append(run.attempt)
        if run.attempt == 1:
            raise ConnectionError("once in each leg")
        done = (run.resumed_from or 0) + 1
        return Continue(done) if done < 4 else done

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()
    assert attempts == [1, 2] * 4
    assert mill.get(job_id).body["result"] == 4


def test_a_cancel_is_learned_at_the_next_checkpoint_and_the_job_may_clean_up(mill: Mill) -> None:
    cleaned: list[Any] = []

    def handler(_payload: Any, run: Run) -> None:
        run.checkpoint(1)
        composition.parts().store.cancel(mill.job(run.job_id), now=mill.now())
        try:
            run.checkpoint(2)
        except CancelRequestedError:
            cleaned.append(run.job_id)
            raise

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()
    assert cleaned == [job_id]
    assert mill.get(job_id).body["state"] == "cancelled"


def test_a_continuation_that_comes_after_a_cancel_is_the_end(mill: Mill) -> None:
    def handler(_payload: Any, run: Run) -> Continue:
        composition.parts().store.cancel(mill.job(run.job_id), now=mill.now())
        return Continue(1)

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()
    assert mill.get(job_id).body["state"] == "cancelled"


def test_a_checkpoint_that_is_too_large_kills_the_job_with_that_reason(mill: Mill) -> None:
    mill.script.handler = lambda _payload, run: run.checkpoint("x" * LARGEST_CHECKPOINT_BYTES)
    job_id = mill.accepted()
    mill.run()
    body = mill.get(job_id).body
    assert (body["state"], body["death"], body["checkpoint"]) == ("dead", "permanent error", None)
    assert body["errors"][0]["class"] == "CheckpointTooLargeError"


@pytest.mark.parametrize(
    "progress", [{"done": 0.5}, {"total": "9"}, {"done": float("nan")}, {"done": 10**38}, {"total": -(10**38)}]
)
def test_progress_in_other_than_whole_numbers_is_refused_and_leaves_the_job_readable(
    mill: Mill, progress: dict[str, Any]
) -> None:
    def handler(_payload: Any, run: Run) -> None:
        run.checkpoint(done=1, total=10**38 - 1)
        with pytest.raises(ValueError, match=r"whole number|digits"):
            run.checkpoint(**progress)

    mill.script.handler = handler
    job_id = mill.accepted()
    mill.run()
    body = mill.get(job_id).body
    assert (body["state"], body["progress"]["done"]) == ("succeeded", 1)


def test_progress_counts_a_truth_value_as_a_number(mill: Mill) -> None:
    mill.script.handler = lambda _payload, run: run.checkpoint(done=True, total=2)
    job_id = mill.accepted()
    mill.run()
    assert mill.get(job_id).body["progress"]["done"] == 1


def test_progress_alone_leaves_the_saved_state_as_it_was(mill: Mill) -> None:
    def handler(_payload: Any, run: Run) -> None:
        run.checkpoint({"page": 1}, done=1)
        run.checkpoint(done=2, total=9)

    mill.script.handler = handler
    job_id = mill.accepted()
    worked(mill)
    body = mill.get(job_id).body
    assert (body["checkpoint"], body["progress"]["done"], body["progress"]["total"]) == ({"page": 1}, 2, 9)


def test_a_run_knows_when_it_has_to_end(mill: Mill) -> None:
    mill.stop_clock()
    left: list[timedelta] = []
    mill.script.handler = lambda _payload, run: left.append(run.deadline - mill.now())
    mill.accepted()
    assert mill.publish() == []
    mill.work(mill.receive(), Context())
    assert timedelta(seconds=4) < left[0] <= timedelta(seconds=5)


@pytest.fixture
def importing() -> Iterator[JobType]:
    with job_types_of("long-jobs.md") as known:
        yield known.get("archive.import")


def test_the_example_of_the_page_saves_each_step_and_resumes(importing: JobType) -> None:
    ran = run_job(importing, {"pages": 3})
    assert (ran.state, ran.result, ran.checkpoints) == (State.SUCCEEDED, {"pages": 3}, (1, 2, 3))
    again = run_job(importing, {"pages": 3}, checkpoint=2)
    assert (again.result, again.checkpoints) == ({"pages": 3}, (3,))


def test_the_example_of_the_page_continues_when_its_time_is_short(
    importing: JobType, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importing.handler.__globals__
    monkeypatch.setitem(module, "ONE_PAGE", timedelta(days=365 * 1000))
    drive = Drive(importing, {"pages": 3})
    ran = drive.run()
    assert (ran.state, ran.job.hops, json.loads(ran.job.progress.checkpoint or "")) == (State.QUEUED, 1, 0)
    assert drive.run().job.hops == 2


def test_a_page_of_the_example_fits_into_a_run_on_every_stage(importing: JobType) -> None:
    page = importing.handler.__globals__["ONE_PAGE"]
    for stage in STAGES.values():
        assert all(page < timedelta(seconds=lane.job_timeout_seconds) for lane in stage().lanes)


def test_the_example_of_the_page_ends_when_it_is_asked_to(importing: JobType) -> None:
    drive = Drive(importing, {"pages": 3})
    drive.cancel()
    assert drive.run().state is State.CANCELLED
