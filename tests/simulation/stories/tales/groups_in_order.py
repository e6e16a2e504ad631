"""The jobs of a group run one after another, in the order submitted."""

from typing import Any

from tests.simulation.actors.operator_objects import purger, redriver
from tests.simulation.stories.stage import TENANT, Stage
from tidemill import composition


def the_jobs_of_a_group_run_in_order(stage: Stage) -> None:
    """The first fails once, and holds back the second."""
    stage.post("/jobs", _of_group("sim.plain", count=1, fails=1))
    second = stage.post("/jobs", _of_group("sim.effect", count=2))
    stage.passes(20)
    stage.get(f"/jobs/{second['id']}")


def a_dead_job_lets_the_next_of_its_group_run(stage: Stage) -> None:
    stage.post("/jobs", _of_group("sim.permanent"))
    stage.post("/jobs", _of_group("sim.effect", count=2))
    stage.passes(10)


def a_dead_job_that_blocks_its_group_is_redriven(stage: Stage) -> None:
    """Then it succeeds, and the next one runs."""
    first = stage.post("/jobs", _of_group("sim.blocking", fails=2))
    second = stage.post("/jobs", _of_group("sim.effect", count=2))
    stage.passes(30)
    stage.get(f"/jobs/{first['id']}")
    stage.get(f"/jobs/{second['id']}")
    stage.operate("redrives the head of the group", lambda: composition.parts().control.redrive(TENANT, first["id"]))
    stage.passes(30)


def a_dead_job_that_blocks_its_group_is_purged(stage: Stage) -> None:
    """Then the next one gets its turn."""
    first = stage.post("/jobs", _of_group("sim.blocking", fails=9))
    stage.post("/jobs", _of_group("sim.effect", count=2))
    stage.passes(30)

    def purge() -> object:
        store = composition.parts().store
        job = store.get(TENANT, first["id"])
        assert job
        return purger().purge(job)

    stage.operate("purges the head of the group", purge)
    stage.passes(0.5)


def a_dead_job_is_redriven_behind_the_others_of_its_group(stage: Stage) -> None:
    """It did not block, so the others have gone on. It comes again in its own turn."""
    dead = stage.post("/jobs", _of_group("sim.repaired", count=1))
    stage.passes(60)
    stage.post("/jobs", _of_group("sim.effect", seconds=8))

    def redrive() -> object:
        job = composition.parts().store.get(TENANT, dead["id"])
        assert job
        refused: list[object] = []
        done = redriver().redrive(job, by="ada", reason="repaired", refused=lambda *both: refused.append(both))
        return {"redriven": done, "refused": len(refused)}

    stage.operate("redrives the dead job", redrive)
    stage.passes(20)


def a_waiting_job_of_a_group_is_cancelled(stage: Stage) -> None:
    """Then another one of the group waits for the first, and runs after it."""
    stage.post("/jobs", _of_group("sim.effect", seconds=5))
    second = stage.post("/jobs", _of_group("sim.effect", count=2))
    stage.post(f"/jobs/{second['id']}/cancel")
    stage.post("/jobs", _of_group("sim.plain", count=3))
    stage.passes(20)


def _of_group(kind: str, **plan: Any) -> dict[str, Any]:
    return {"type": kind, "group": "orders", "payload": plan}
