"""Batches: they open, fill, close, and count what has become of their jobs."""

from typing import Any

from tests.simulation.stories.stage import BOB, Stage


def _job(batch: str, type_: str = "sim.effect", **plan: Any) -> dict[str, Any]:
    return {"type": type_, "payload": plan, "batch": batch}


def a_batch_that_succeeds(stage: Stage) -> None:
    callbacks = {
        "on_success": {"type": "sim.plain", "payload": {"key": "success"}, "tags": ["t"], "lane": "bulk"},
        "on_failure": {"type": "sim.plain", "payload": {"key": "failure"}},
        "on_complete": {"type": "sim.plain", "payload": {"key": "complete"}, "max_age_seconds": 900, "group": "g"},
    }
    batch = stage.post("/batches", callbacks, key="one")
    stage.post("/batches", callbacks, key="one")
    stage.post("/jobs", _job(batch["id"], seconds=1), key="job")
    stage.post(f"/batches/{batch['id']}/close")
    stage.post(f"/batches/{batch['id']}/close")
    stage.passes(5)
    stage.get(f"/batches/{batch['id']}")


def a_batch_that_takes_several_jobs_at_once(stage: Stage) -> None:
    batch = stage.post("/batches", {})
    jobs = [
        _job(batch["id"]) | {"idempotency_key": "a"},
        _job(batch["id"], count="x"),
        _job(batch["id"], seconds=30) | {"idempotency_key": "b"},
        _job("5c1d2f5e-0000-5000-8000-000000000000"),
    ]
    stage.post("/jobs/batch", {"jobs": jobs})
    stage.passes(3.5)
    stage.get(f"/batches/{batch['id']}")
    stage.get("/jobs", batch=batch["id"])
    stage.get("/jobs", batch=batch["id"], state="succeeded", limit="1")


def a_batch_that_refuses(stage: Stage) -> None:
    stage.post(
        "/batches", {"on_success": {"type": "sim.plain", "group": ""}, "on_failure": {"type": "sim.plain", "lane": "x"}}
    )
    stage.post("/batches", {"on_complete": {"type": "sim.plain", "payload": {"count": "x"}}})
    batch = stage.post("/batches", {}, key="one")
    stage.post("/jobs", _job(batch["id"]) | {"unique": {"period_seconds": 60}})
    stage.post("/jobs", _job(batch["id"]), tenant=BOB)
    stage.post(f"/batches/{batch['id']}/close", tenant=BOB)
    stage.get(f"/batches/{batch['id']}", tenant=BOB)
    stage.post(f"/batches/{batch['id']}/close")
    stage.post("/jobs", _job(batch["id"]))
    stage.passes(8)
    stage.post("/jobs", _job(batch["id"]))


def a_batch_that_dies_and_is_redriven(stage: Stage) -> None:
    callbacks = {name: {"type": "sim.plain", "payload": {"key": name}} for name in ("on_failure", "on_success")}
    batch = stage.post("/batches", callbacks, key="one")
    stage.post("/jobs", _job(batch["id"], "sim.repaired", count=1), key="job")
    stage.post(f"/batches/{batch['id']}/close")
    stage.passes(60)
    stage.post(f"/jobs/{batch['id']}/redrive")
    stage.passes(6)
    stage.get(f"/batches/{batch['id']}")


def a_batch_that_is_cancelled(stage: Stage) -> None:
    """With a batch within it, which has a job of its own."""
    batch = stage.post("/batches", {"on_complete": {"type": "sim.plain"}}, key="one")
    inner = stage.post("/batches", {"batch": batch["id"]}, key="two")
    stage.post("/jobs", _job(inner["id"]) | {"delay_seconds": 3600}, key="job")
    stage.post(f"/batches/{batch['id']}/cancel")
    stage.post(f"/batches/{batch['id']}/cancel")
    stage.passes(20)
    stage.get(f"/batches/{batch['id']}")
    stage.get(f"/batches/{inner['id']}")


def a_batch_that_is_cancelled_when_its_jobs_have_died(stage: Stage) -> None:
    """Of them, one is a batch."""
    batch = stage.post("/batches", {}, key="one")
    inner = stage.post("/batches", {"batch": batch["id"]}, key="two")
    stage.post("/jobs", _job(batch["id"], "sim.permanent"), key="outer")
    dead = stage.post("/jobs", _job(inner["id"], "sim.permanent"), key="inner")
    stage.post(f"/batches/{inner['id']}/close")
    stage.passes(8)
    stage.get(f"/batches/{inner['id']}")
    stage.post(f"/batches/{batch['id']}/cancel")
    stage.passes(14)
    stage.get(f"/batches/{batch['id']}")
    stage.get(f"/jobs/{inner['id']}")
    stage.get(f"/jobs/{dead['id']}")


def a_job_that_is_no_batch(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.plain", "delay_seconds": 50}, key="job")
    for name in (job["id"], "5c1d2f5e-0000-5000-8000-000000000000"):
        stage.post(f"/batches/{name}/cancel")
        stage.post(f"/batches/{name}/close")
        stage.get(f"/batches/{name}")
    stage.get(f"/jobs/{job['id']}")
