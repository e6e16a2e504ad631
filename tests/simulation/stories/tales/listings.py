"""How a caller lists jobs: by state, type and tag, a page at a time."""

from typing import Any, Final

from tests.simulation.stories.stage import Stage

_OTHER: Final = "111122223333:AROABBB"


def jobs_are_listed_by_their_features(stage: Stage) -> None:
    """Five jobs on two pages, and by each filter."""
    _submit(stage)
    first = stage.get("/jobs", limit="3")
    stage.get("/jobs", limit="100", cursor=first["cursor"])
    stage.get("/jobs", state="scheduled", limit="2")
    stage.get("/jobs", type="sim.plain", tag="b")


def a_list_is_refused(stage: Stage) -> None:
    """A cursor of another tenant or list, and parameters that mean nothing."""
    _submit(stage)
    cursor = stage.get("/jobs", limit="1", type="sim.effect")["cursor"]
    stage.get("/jobs", limit="5", cursor=cursor, type="sim.plain")
    stage.get("/jobs", cursor=cursor, type="sim.effect", tenant=_OTHER)
    stage.get("/jobs", cursor="no-cursor", type="sim.effect")
    stage.get("/jobs", limit="101", state="ended", tag="Big", more="1")
    stage.get("/jobs", limit="0", since="2045-03-05T00:00:00Z", until="2045-03-04T00:00:00Z")
    stage.get("/jobs", since="2045-03-05T00:00:00Z", until="2045-03-04T00:00:00Z")
    stage.get("/jobs", batch="a", event="b")
    stage.get("/jobs", batch="00000000-0000-0000-0000-000000000000")
    stage.get("/jobs", event="00000000-0000-0000-0000-000000000000")


def a_job_that_is_kept_no_longer(stage: Stage) -> None:
    """DynamoDB has not deleted it yet."""
    job = stage.post("/jobs", {"type": "sim.permanent", "payload": {}})
    stage.passes(10)
    stage.get("/jobs", type="sim.permanent")
    stage.passes(0.01 * 86_400)
    stage.get("/jobs", type="sim.permanent")
    stage.get(f"/jobs/{job['id']}")


def _submit(stage: Stage) -> None:
    """Two at one time, and three at a later one."""
    stage.post("/jobs/batch", {"jobs": [_job("sim.plain", ["b"], 2_000), _job("sim.effect", ["a"], 4_000)]})
    stage.passes(1)
    three = [_job("sim.plain", ["a", "b"], 3_000), _job("sim.plain", [], 800), _job("sim.effect", ["b"], 1_000)]
    stage.post("/jobs/batch", {"jobs": three})


def _job(kind: str, tags: list[str], delay: int) -> dict[str, Any]:
    return {"type": kind, "tags": tags, "delay_seconds": delay, "payload": {"count": delay}}
