"""What a caller may submit, how the engine answers, and what it keeps."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.simulation.stories.stage import Mishap, Stage

_OTHER: Final = "111122223333:AROABBB"
_EFFECT: Final = {"type": "sim.effect"}


def several_jobs_of_one_request_are_inserted_together(stage: Stage) -> None:
    """One of them exists already, one has the key of another body, and one has no valid body."""
    stage.post("/jobs", {"type": "sim.plain", "payload": {"count": 1}}, key="old")
    stage.passes(5)
    stage.post(
        "/jobs/batch",
        {
            "jobs": [
                {"type": "sim.plain", "payload": {"count": 1}, "idempotency_key": "old"},
                {"type": "sim.plain", "payload": {"count": 2}, "idempotency_key": "old"},
                {"type": "sim.unheard-of"},
                {"type": "sim.plain", "payload": {"count": "many"}, "tags": ["A"]},
                {"type": "sim.effect", "payload": {"count": 3}, "delay_seconds": 1_000},
                {"type": "sim.plain", "payload": {"count": 4}, "tags": ["last"], "delay_seconds": 2_000},
                {"type": "sim.plain", "payload": {"count": 5}, "group": "orders", "delay_seconds": 3_000},
            ]
        },
    )


def a_joint_insert_fails_and_each_job_is_inserted_alone(stage: Stage) -> None:
    stage.next_call("submit", "BatchExecuteStatement", Mishap.ANSWER_LOST)
    jobs = [{**_EFFECT, "delay_seconds": 5_000, "payload": {"count": number}} for number in range(2)]
    stage.post("/jobs/batch", {"jobs": jobs})
    stage.post("/jobs/batch", {"jobs": []})
    stage.post("/jobs/batch", {"jobs": [_EFFECT]}, key="no-key-here")
    stage.post("/jobs/batch", {"jobs": [_EFFECT], "more": 1})


def jobs_that_begin_later(stage: Stage) -> None:
    """One within the delay of the lane, one a little later, and one at a given time."""
    stage.post("/jobs", {**_EFFECT, "delay_seconds": 900})
    later = stage.post("/jobs", {**_EFFECT, "delay_seconds": 900.001, "tags": ["later"]})
    stage.post("/jobs", {**_EFFECT, "run_at": _at(stage, 1_205.0004), "payload": {"count": 1}}, key="at")
    stage.passes(300)
    stage.wakes()
    stage.passes(500)
    stage.get(f"/jobs/{later['id']}")


def a_job_whose_deadline_passes_before_it_begins(stage: Stage) -> None:
    """It waits for the only slot of its limit. A deadline in time does not matter."""
    plan = {"key": "k"}
    stage.post(
        "/jobs", {"type": "sim.limited", "payload": {**plan, "seconds": 12}, "deadline": _at(stage, 5)}, key="first"
    )
    late = stage.post("/jobs", {"type": "sim.limited", "payload": plan, "deadline": _at(stage, 8)})
    stage.passes(20)
    stage.get(f"/jobs/{late['id']}")


def a_job_that_is_too_old_to_be_of_use(stage: Stage) -> None:
    old = stage.post("/jobs", {**_EFFECT, "max_age_seconds": 0.5, "tags": ["old"]})
    stage.passes(10)
    stage.get(f"/jobs/{old['id']}")
    stage.post(f"/jobs/{old['id']}/cancel")
    stage.post(f"/jobs/{old['id']}/redrive")


def a_key_is_used_again(stage: Stage) -> None:
    """With the same body in other words, and with another one. Only the first makes a job."""
    body = {**_EFFECT, "payload": {"count": 1}, "tags": ["b", "a"], "delay_seconds": 5_000}
    stage.post("/jobs", body, key="k")
    stage.passes(2)
    stage.post("/jobs", {**body, "tags": ["a", "b"], "delay_seconds": 5_000.0}, key="k")
    stage.post("/jobs", {**body, "payload": {"count": 2}}, key="k")
    stage.post("/jobs", {**body, "delay_seconds": 5_001}, key="k")
    stage.post("/jobs", body, key="k", tenant=_OTHER)


def a_submission_is_repeated_after_its_deadline(stage: Stage) -> None:
    """The job of the first one is the answer. Without a first one, the deadline is refused."""
    deadline = _at(stage, 10)
    stage.post("/jobs", {**_EFFECT, "deadline": deadline}, key="k")
    stage.passes(15)
    stage.post("/jobs", {**_EFFECT, "deadline": deadline}, key="k")
    stage.post("/jobs", {**_EFFECT, "deadline": _at(stage, -4)}, key="k")
    stage.post("/jobs", {**_EFFECT, "deadline": deadline}, key="new")
    stage.post("/jobs", {**_EFFECT, "deadline": deadline})
    stage.passes(86_400)
    stage.post("/jobs", {**_EFFECT, "deadline": deadline}, key="k")
    stage.post("/jobs", _EFFECT, key="k")


def jobs_that_are_unique_for_a_time(stage: Stage) -> None:
    plan = {"type": "sim.unique", "payload": {"count": 1}}
    stage.post("/jobs", plan)
    stage.post("/jobs", {**plan, "tags": ["again"]})
    stage.post("/jobs", {**plan, "payload": {"count": 2}, "delay_seconds": 5_000})
    stage.post("/jobs", plan, key="none")
    mail = {**_EFFECT, "unique": {"period_seconds": 60, "key": "mail"}, "delay_seconds": 5_000}
    stage.post("/jobs", mail)
    stage.post("/jobs", {**mail, "payload": {"count": 9}})
    stage.passes(3_600)
    stage.post("/jobs", plan)


def bodies_that_are_refused(stage: Stage) -> None:
    bodies: list[Any] = [
        [],
        {},
        {"type": "sim.unheard-of", "payload": []},
        {"type": "sim.effect", "payload": {"fails": "often"}, "lane": "critical", "group": "", "tags": ["a", "a"]},
        {"type": "sim.effect", "delay_seconds": 1, "run_at": _at(stage, 5), "deadline": _at(stage, 5)},
        {"type": "sim.effect", "run_at": _at(stage, -61), "deadline": _at(stage, -61)},
        {"type": "sim.effect", "run_at": _at(stage, 400 * 86_400), "max_age_seconds": 0},
        {"type": "sim.effect", "run_at": "tomorrow", "tags": ["a", "b", "c", "d", "e", "f"]},
        {"type": "sim.effect", "tags": ["Upper", "ok"], "unique": {"period_seconds": 0.5, "key": ""}, "odd": 1},
        {"type": "sim.effect", "group": "é" * 65, "unique": {"period_seconds": 1, "key": ""}, "replace": "payload"},
        {"type": "sim.effect", "debounce_key": "k", "debounce_max_seconds": 1},
        {"type": "sim.effect", "debounce_seconds": 5, "debounce_max_seconds": 4, "replace": "payload", "group": "g"},
        {"type": "sim.effect", "supersedes": "one", "delay_seconds": 1, "max_age_seconds": 1},
        {"type": "sim.unique", "supersedes": "one", "batch": "b"},
        {"type": "sim.effect", "batch": "00000000-0000-0000-0000-000000000000"},
        {"type": "tidemill.event"},
        {"type": "tidemill.batch"},
        {"type": "tidemill.flow"},
        {"type": "sim.effect", "payload": _nested(101)},
    ]
    for body in bodies:
        stage.post("/jobs", body)
    stage.post("/jobs", _EFFECT, key="k" * 256)
    stage.post("/jobs", {"type": "sim.effect", "payload": {"padding": "x" * 262_131}})


def payloads_that_do_not_fit_into_the_document(stage: Stage) -> None:
    """One has an item of its own, and one a file in S3. A repeated submission leaves none."""
    item = {**_EFFECT, "payload": {"padding": "i" * 4_000}, "delay_seconds": 5_000}
    file = {**_EFFECT, "payload": {"padding": "f" * 200_000}}
    stage.post("/jobs", item, key="item")
    job = stage.post("/jobs", file, key="file")
    stage.post("/jobs", item, key="item")
    stage.post("/jobs", file, key="file")
    stage.passes(10)
    stage.operate("count the files", lambda: len(stage.world.s3.objects))
    stage.get(f"/jobs/{job['id']}")


def a_job_is_shown_to_its_owner_only(stage: Stage) -> None:
    job = stage.post("/jobs", {**_EFFECT, "delay_seconds": 60})
    stage.get(f"/jobs/{job['id']}", tenant=_OTHER)
    stage.post(f"/jobs/{job['id']}/cancel", tenant=_OTHER)
    stage.post(f"/jobs/{job['id']}/redrive", tenant=_OTHER)
    stage.get("/jobs", tenant=_OTHER)
    stage.get("/jobs/" + "0" * 37)
    stage.get("/jobs/none")


def _at(stage: Stage, seconds: float) -> str:
    """So many seconds from now."""
    now = datetime.fromtimestamp(stage.world.scheduler.now_ms / 1000, UTC)
    return (now + timedelta(seconds=seconds)).isoformat()


def _nested(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for _ in range(levels - 1):
        made = {"padding": made}
    return made
