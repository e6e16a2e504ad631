"""What undoes a job, or supersedes it."""

from typing import Any

from tests.simulation.actors.operator_objects import purger
from tests.simulation.stories.stage import BOB, TENANT, Mishap, Stage
from tidemill import composition
from tidemill.cli.job_report import report


def _books(stage: Stage, key: str = "one", group: str | None = None, **plan: Any) -> str:
    body = {"type": "sim.books", "payload": plan} | ({"group": group} if group else {})
    job: str = stage.post("/jobs", body, key=key)["id"]
    return job


def a_job_that_is_undone(stage: Stage) -> None:
    job = _books(stage, count=1)
    stage.post(f"/jobs/{job}/undo")
    stage.passes(4)
    stage.post(f"/jobs/{job}/undo", tenant=BOB)
    undo = stage.post(f"/jobs/{job}/undo")
    stage.post(f"/jobs/{job}/undo")
    stage.passes(2)
    stage.get(f"/jobs/{job}")
    stage.post(f"/jobs/{undo['id']}/undo")


def a_job_that_has_no_undo(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="one")
    stage.passes(4)
    stage.post(f"/jobs/{job['id']}/undo")
    stage.post("/jobs/none/undo")


def an_undo_that_is_cancelled_and_asked_for_again(stage: Stage) -> None:
    job = _books(stage, group="g", padding="x" * 500)
    stage.passes(4)
    undo = stage.post(f"/jobs/{job}/undo")
    stage.post(f"/jobs/{undo['id']}/cancel")
    stage.post(f"/jobs/{job}/undo")


def an_undo_of_an_operator(stage: Stage) -> None:
    job = _books(stage)

    def undo(by: str, job_id: str = job) -> Any:
        accepted = composition.parts().undoer(TENANT, job_id, by=by, reason="a typo")
        return accepted and {"replayed": accepted.replayed, "job": report(accepted.job)["id"]}

    stage.operate("undoes too early", lambda: undo("eve"))
    stage.passes(4)
    stage.next_call("operator", "TransactWriteItems", Mishap.ANSWER_LOST)
    stage.operate("undoes", lambda: undo("eve"))
    stage.operate("undoes again", lambda: undo("ada"))
    stage.operate("undoes none", lambda: undo("eve", "none"))


def _corrects(stage: Stage, earlier: str, key: str, **more: Any) -> str:
    body = {"type": "sim.rebooks", "payload": {"count": 1}, "supersedes": earlier} | more
    answer = stage.post("/jobs", body, key=key)
    return str(answer.get("id"))


def a_correction_of_a_job_that_has_not_begun(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.books", "payload": {}, "delay_seconds": 3600}, key="one")
    correction = _corrects(stage, "one", "two")
    _corrects(stage, "one", "two")
    stage.passes(4)
    stage.get(f"/jobs/{correction}")


def a_correction_that_is_refused(stage: Stage) -> None:
    _books(stage, group="g")
    _corrects(stage, "none", "two")
    _corrects(stage, "two", "two")
    _corrects(stage, "one", "two")
    _corrects(stage, "one", "two", group="h")
    _corrects(stage, "one", "two", group="g")
    _corrects(stage, "one", "three", group="g")
    _corrects(stage, "two", "three", group="g")
    _corrects(stage, "two", "three", unique={"period_seconds": 60})


def a_correction_of_a_correction(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}, "delay_seconds": 60}, key="one")["id"]
    _corrects(stage, job, "two", type="sim.books")
    stage.passes(4)
    undo = stage.get("/jobs", type="sim.books")["jobs"][0]["id"]
    stage.post(f"/jobs/{undo}/undo")
    _corrects(stage, "two", "three")


def a_correction_of_a_job_that_runs(stage: Stage) -> None:
    job = _books(stage, seconds=4)
    stage.passes(3)
    correction = _corrects(stage, job, "two")
    stage.passes(8)
    stage.get(f"/jobs/{correction}")


def a_correction_whose_undo_is_cancelled(stage: Stage) -> None:
    """It dies, too."""
    job = _books(stage, count=9)
    stage.passes(4)
    _corrects(stage, "one", "two")
    stage.passes(1)
    undo = stage.get(f"/jobs/{job}")["undone_by"]
    stage.post(f"/jobs/{undo}/cancel")
    stage.passes(6)


def a_correction_whose_undo_is_dead(stage: Stage) -> None:
    """Nothing says whether it had an effect, so the correction dies, too."""
    _books(stage, count=9)
    stage.passes(4)
    correction = _corrects(stage, "one", "two")
    stage.passes(60)
    stage.get(f"/jobs/{correction}")


def a_correction_of_a_job_that_ends_at_its_checkpoint(stage: Stage) -> None:
    """So it has no effect, and nothing undoes it."""
    stage.post("/jobs", {"type": "sim.steps", "payload": {"count": 3, "seconds": 3}}, key="one")
    stage.passes(4)
    correction = _corrects(stage, "one", "two")
    stage.passes(30)
    stage.get(f"/jobs/{correction}")


def a_correction_whose_earlier_job_is_purged(stage: Stage) -> None:
    """Nothing is known of its effect then."""
    job = _books(stage, seconds=4)
    stage.passes(3)
    correction = _corrects(stage, job, "two")
    stage.passes(3.3)
    stage.operate("purges the earlier job", lambda: _purged(job))
    stage.passes(10)
    stage.get(f"/jobs/{correction}")
    _corrects(stage, job, "three")


def corrections_of_ended_jobs(stage: Stage) -> None:
    """Of one that records no undo, one that is undone, its undo, and one whose undo is purged."""
    job = _books(stage)
    stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="no-undo")
    stage.passes(4)
    undo = stage.post(f"/jobs/{job}/undo")["id"]
    _corrects(stage, job, "early")
    stage.passes(4)
    for earlier, key in (("no-undo", "two"), (undo, "three"), (job, "four")):
        _corrects(stage, earlier, key)
    other = _books(stage, "other")
    stage.passes(4)
    gone = stage.post(f"/jobs/{other}/undo")["id"]
    stage.passes(4)
    stage.operate("purges the undo", lambda: _purged(gone))
    stage.post(f"/jobs/{other}/undo")
    _corrects(stage, "other", "five")


def _purged(job_id: str) -> object:
    job = composition.parts().store.get(TENANT, job_id)
    return job and purger().purge(job)
