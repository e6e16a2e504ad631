"""Batches: they open, fill, close, and count what has become of their jobs."""

from typing import Any

from tests.simulation.stories.stage import Stage


def _job(batch: str, type_: str = "sim.effect", **plan: Any) -> dict[str, Any]:
    return {"type": type_, "payload": plan, "batch": batch}


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
    stage.get("/jobs", batch=batch["id"], state="succeeded")
