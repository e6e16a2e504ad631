"""What owners and operators do to single jobs."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from tests.simulation.actors.operator_objects import purger, redriver
from tests.simulation.stories.stage import TENANT, Stage
from tidemill import composition
from tidemill.application.control import Control
from tidemill.application.dead_letter_sweep import sweep
from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.aws import clients
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.names import Lane
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue
from tidemill.system import clock, ids


def an_owner_cancels_jobs(stage: Stage) -> None:
    """One that is queued, twice, one that is scheduled, and one that has ended."""
    queued = stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 10})
    scheduled = stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 1_000})
    ended = stage.post("/jobs", {"type": "sim.plain"})
    stage.passes(5)
    for job in (queued, queued, scheduled, ended):
        stage.post(f"/jobs/{job['id']}/cancel")
    stage.post(f"/jobs/{queued['id']}/cancel", {"odd": 1})
    stage.passes(10)


def an_owner_cancels_a_running_job(stage: Stage) -> None:
    """It ends at its next checkpoint. A redrive is refused, since it is not dead."""
    job = stage.post("/jobs", {"type": "sim.steps", "payload": {"count": 4, "seconds": 4}})
    stage.passes(5)
    stage.post(f"/jobs/{job['id']}/cancel")
    stage.post(f"/jobs/{job['id']}/cancel")
    stage.post(f"/jobs/{job['id']}/redrive")
    stage.passes(20)
    stage.get(f"/jobs/{job['id']}")


def a_cancelled_run_succeeds_all_the_same(stage: Stage) -> None:
    """It saves no checkpoint, and its effect is written. Another one, which fails, ends as cancelled."""
    succeeds = stage.post("/jobs", {"type": "sim.plain", "payload": {"seconds": 5}})
    fails = stage.post("/jobs", {"type": "sim.plain", "payload": {"seconds": 6, "fails": 1}})
    stage.passes(4)
    for job in (succeeds, fails):
        stage.operate("cancels", partial(_cancelled, job["id"]))
    stage.passes(10)
    for job in (succeeds, fails):
        stage.get(f"/jobs/{job['id']}")


def _cancelled(job_id: str) -> object:
    return _shown(composition.parts().control.cancel(TENANT, job_id, by="ada", reason="x"))


def an_owner_redrives_a_dead_job(stage: Stage) -> None:
    """The second redrive is refused. The job dies again, and keeps both errors."""
    job = stage.post("/jobs", {"type": "sim.permanent", "payload": {"count": 1}, "tags": ["t"]})
    stage.passes(5)
    stage.post(f"/jobs/{job['id']}/retry")
    stage.post(f"/jobs/{job['id']}/retry")
    stage.passes(5)
    stage.get(f"/jobs/{job['id']}")


def an_operator_redrives_the_dead_jobs_of_a_type(stage: Stage) -> None:
    """Each by its own copy. The second copy is stale by then."""
    stage.post("/jobs", {"type": "sim.repaired", "payload": {"count": 1}}, key="one")
    stage.post("/jobs", {"type": "sim.permanent"}, key="two")
    stage.passes(70)

    def act() -> object:
        redrive = redriver()
        refused: list[object] = []
        found = list(redrive.dead_jobs(replace(ANY_JOB, types=("sim.repaired",))))
        done = [
            redrive.redrive(job, by="ada", reason="repaired", refused=lambda _, now: refused.append(_shown(now)))
            for job in [*found, *found]
        ]
        return {"planned": [_shown(job) for job in found], "done": done, "refused": refused}

    stage.operate("redrives", act)


def an_operator_redrives_a_job_with_another_payload(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.permanent", "payload": {"padding": "x" * 3_000}}, key="one")
    stage.passes(5)

    def act() -> object:
        redrive = redriver()
        wanted = JobFilter(ids=(job["id"],), tenant=TENANT)
        (dead,) = redrive.dead_jobs(wanted)
        payloads = composition.parts().payloads
        return [
            redrive.redrive_with(dead, text, payloads, by="ada", reason="typo")
            for text in ('{"count":7}', '{"padding":"' + "y" * 3_000 + '"}')
        ]

    stage.operate("redrives with another payload, and again with a stale copy", act)
    stage.get(f"/jobs/{job['id']}")
    stage.passes(5)


def an_operator_cancels_with_a_stale_copy(stage: Stage) -> None:
    """As the filter wants queued jobs only, the job that runs by now is left alone."""
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 5}})
    read: list[Job] = []
    stage.operate(
        "reads the job", lambda: read.extend(filter(None, [composition.parts().store.get(TENANT, job["id"])]))
    )
    stage.passes(4)
    queued = replace(ANY_JOB, states=(State.QUEUED,))
    live = replace(ANY_JOB, states=(State.QUEUED, State.RUNNING))

    def control() -> Control:
        return composition.parts().control

    stage.operate("cancels if queued", lambda: control().cancel_found(read[0], queued, by="ada", reason="stop"))
    stage.operate("cancels if live", lambda: control().cancel_found(read[0], live, by="ada", reason="stop"))
    stage.passes(10)
    stage.operate("cancels once more", lambda: control().cancel_found(read[0], live, by="ada"))
    stage.get(f"/jobs/{job['id']}")


def an_operator_purges_an_ended_job(stage: Stage) -> None:
    """Twice: what is gone counts as purged. Its key makes a new job afterwards."""
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {"padding": "x" * 3_000}}, key="k")
    stage.passes(5)

    def purge() -> object:
        found = composition.parts().store.get(TENANT, job["id"])
        assert found
        return [purger().purge(found), purger().purge(found)]

    stage.operate("purges", purge)
    stage.passes(5)
    stage.get(f"/jobs/{job['id']}")
    stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 1_000}, key="k")


def stale_copies_are_refused(stage: Stage) -> None:
    """The job was queued when it was read, and has succeeded since."""
    job = stage.post("/jobs", {"type": "sim.plain"})

    read: list[Job] = []
    stage.operate(
        "reads the job", lambda: read.extend(filter(None, [composition.parts().store.get(TENANT, job["id"])]))
    )
    (queued,) = read
    stage.passes(5)

    def refused(write: str) -> object:
        store, now = composition.parts().store, clock.now()
        try:
            match write:
                case "wake":
                    store.wake(replace(queued, state=State.SCHEDULED), now=now)
                case "nudge":
                    store.nudge(queued, now=now, limit=timedelta(seconds=1), last=False)
                case "redrive":
                    store.redrive(queued, token=ids.new_token(), now=now, by="cleo")
                case "cancel":
                    store.cancel(queued, now=now, by="cleo", reason="late")
        except WriteRefusedError as error:
            return f"{error}: {error.current and error.current.state}"
        return "done"

    for write in ("wake", "nudge", "redrive", "cancel"):
        stage.operate(f"would {write}", partial(refused, write))


def the_messages_of_dead_jobs_are_swept(stage: Stage) -> None:
    """One of a dead job, one of its earlier life, one that cannot be read, and one of a job that never started."""
    stage.post("/jobs", {"type": "sim.permanent"}, key="dead")
    stranded = stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 100}, key="stranded")
    stage.passes(5)
    lane, dead_letters = stage.world.lanes["default"], stage.world.dead_letters["default"]
    message = next(each for each in lane.messages if stranded["id"] in each.body)
    lane.messages.remove(message)
    dead_letters.send(message.body)
    dead_letters.send(dead_letters.messages[0].body.replace('"generation":1', '"generation":0'))
    dead_letters.send("{no json")
    stage.passes(154)
    stage.operate("sweeps too early for a nudge", _swept)
    stage.passes(1)
    stage.operate("sweeps", _swept)
    stage.passes(10)
    stage.operate("sweeps again", _swept)


def messages_of_stranded_jobs_of_which_one_cannot_be_written(stage: Stage) -> None:
    """It stays, the other one is sent again. While no time is left, nothing is hidden or swept."""
    jobs = [stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 100}, key=key) for key in "ab"]
    stage.passes(5)
    lane, dead_letters = stage.world.lanes["default"], stage.world.dead_letters["default"]
    for message in list(lane.messages):
        lane.messages.remove(message)
        dead_letters.send(message.body)
    stage.passes(160)
    stage.world.throttled_items.throttle(f"{TENANT}#{jobs[0]['id']}", for_ms=60_000)
    stage.operate("sweeps without time", lambda: _swept(timedelta(0)))
    stage.operate("sweeps", _swept)
    stage.passes(60)
    stage.operate("sweeps again", _swept)


def the_message_of_a_dead_job_is_moved_back_to_its_lane(stage: Stage) -> None:
    """As the console of SQS does it. The first move redrives the job; another one, too late, finds it redriven."""
    job = stage.post("/jobs", {"type": "sim.permanent"}, key="dead")
    stage.passes(5)
    lane, dead_letters = stage.world.lanes["default"], stage.world.dead_letters["default"]
    (message,) = dead_letters.messages
    dead_letters.messages.clear()
    for _ in range(2):
        lane.send(message.body, attributes=message.attributes)
        stage.passes(6)
    stage.get(f"/jobs/{job['id']}")


def _swept(time_left: timedelta = timedelta(minutes=5)) -> object:
    queue = SqsDeadLetterQueue(clients.sqs(), composition.parts().lane_urls[Lane.DEFAULT].dead_letters)
    return sweep(queue, store=composition.parts().store, clock=clock.now, time_left=lambda: time_left)


def _shown(job: Job | None) -> object:
    if job is None:
        return None
    return {"id": job.id, "state": job.state, "generation": job.generation, "cancel": job.cancel}
