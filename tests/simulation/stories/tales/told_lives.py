"""What operators read of a job afterwards: its history as sentences, and all that its document keeps."""

from functools import partial
from typing import Any

from tests.simulation.actors.operator_objects import redriver
from tests.simulation.stories.operator_tools import remove_setting, set_setting
from tests.simulation.stories.stage import TENANT, Mishap, Stage
from tidemill import composition
from tidemill.application.job_filter import ANY_JOB
from tidemill.application.job_story import story
from tidemill.application.job_view import operator_view, payload_of, record


def a_dead_job_that_an_operator_redrove(stage: Stage) -> None:
    """It dies again, and is redriven again, without a reason."""
    job = _submits(stage, "sim.permanent", "one", tags=["t"])
    stage.passes(4)

    def redrive(reason: str) -> object:
        (dead,) = redriver().dead_jobs(ANY_JOB)
        return redriver().redrive(dead, by="ada", reason=reason)

    stage.operate("redrives", partial(redrive, "repaired"))
    stage.passes(4)
    stage.operate("redrives again", partial(redrive, ""))
    _reads(stage, job)


def jobs_that_an_operator_cancelled(stage: Stage) -> None:
    """One ran, and ends at its next checkpoint. The other waited for a signal."""
    jobs = [
        _submits(stage, "sim.steps", "1", count=5, seconds=3),
        _submits(stage, "sim.waits", "2", count=1, seconds=60),
    ]
    stage.passes(6.5)

    def cancel(job: str) -> object:
        return composition.parts().control.cancel(TENANT, job, by="ada", reason="too late") is not None

    for job in jobs:
        stage.operate("cancels", partial(cancel, job))
        _reads(stage, job)
    stage.passes(5)
    _reads(stage, jobs[0])


def jobs_that_others_submitted(stage: Stage) -> None:
    """One for a batch, one as a node of a flow, and one that follows another."""
    batch = stage.post("/batches", {}, key="1")
    inner = _submits(stage, "sim.plain", "2", batch=batch["id"], delay_seconds=30)
    flow = stage.post("/flows", {"nodes": [{"name": "a", "type": "sim.plain", "payload": {}}]}, key="3")
    _submits(stage, "sim.chain", "4", count=1)
    stage.passes(6)
    found = stage.get("/jobs", limit="10")["jobs"]
    node = next(job["id"] for job in found if job.get("flow") == flow["id"] != job["id"])
    follower = next(job["id"] for job in found if job["type"] == "sim.effect")
    for job in (inner, node, follower):
        _reads(stage, job)


def a_booking_its_undo_and_the_correction(stage: Stage) -> None:
    first, second = _submits(stage, "sim.books", "1"), _submits(stage, "sim.books", "2", padding="x")
    stage.passes(4)
    stage.operate("undoes", lambda: composition.parts().undoer(TENANT, first, by="ada", reason="a typo") is not None)
    correction = stage.post("/jobs", {"type": "sim.rebooks", "payload": {}, "supersedes": "2"}, key="3")["id"]
    stage.passes(8)
    undone_by = stage.get(f"/jobs/{first}")["undone_by"]
    for job in (first, second, undone_by, correction):
        _reads(stage, job)


def a_job_of_steps_that_was_parked(stage: Stage) -> None:
    """Its type was paused first, and its worker is killed after both steps."""
    set_setting(stage, "pauses.type=sim.stepwise", {})
    job = _submits(stage, "sim.stepwise", "1", count=2, seconds=2)
    stage.passes(2)
    _reads(stage, job)
    remove_setting(stage, "pauses.type=sim.stepwise")
    stage.wakes()
    stage.passes(4)
    stage.next_call("work-default", "TransactWriteItems", Mishap.KILLED_BEFORE)
    stage.passes(10)
    _reads(stage, job)


def _submits(stage: Stage, kind: str, key: str, **more: Any) -> str:
    """Options of the submission among the members of the payload go where they belong."""
    options = {name: more.pop(name) for name in ("tags", "batch", "delay_seconds") if name in more}
    job: str = stage.post("/jobs", {"type": kind, "payload": more} | options, key=key)["id"]
    return job


def _reads(stage: Stage, job_id: str) -> None:
    """As `tidemill explain` and `tidemill export` do."""

    def act() -> object:
        job = composition.parts().store.get(TENANT, job_id)
        assert job
        shown = operator_view(job, payload=payload_of(job, composition.parts().payloads))
        kept = record(job)
        assert kept.keys() < shown.keys()
        return {"story": [[at, what] for at, what in story(job)], "document": shown}

    stage.operate(f"reads job {job_id}", act)
