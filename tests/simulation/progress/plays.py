"""The plays. Each says what stood still: nothing, as the engine is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from itertools import count, islice
from typing import Any, Final
from zlib import crc32

from tests.simulation.actors.callers import TENANTS
from tests.simulation.actors.operator_objects import configurator
from tests.simulation.checks.passes import PassChecks
from tests.simulation.progress.prices import PRICED
from tests.simulation.progress.scene import TENANT, Scene, pause, scene
from tests.simulation.world.world import PAYMENTS
from tidemill import composition
from tidemill.application.batches import batch_members
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.operations.migration import Migration, Progress
from tidemill.application.passes.table_pass import RESERVE
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.application.waiting import release, wake
from tidemill.batch import job as batch_job
from tidemill.domain.attempt.retry import LARGEST_MAX_HOPS
from tidemill.domain.batches.composite_cancels import is_cancelled
from tidemill.domain.flows.flows import LONGEST_FLOW
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb import document
from tidemill.dynamodb.batches import batch_pages
from tidemill.dynamodb.dispatch.owed_items import owed_key
from tidemill.dynamodb.groups.group_items import head_key
from tidemill.entrypoints import reconcile
from tidemill.entrypoints import wake as wake_function
from tidemill.names import JOB_KEY, WAKE_PART, WAKE_PARTS
from tidemill.system import clock

_DAY_MS: Final = 86_400_000
#: The time of a run of a migration. Its work ends a little earlier.
_RUN_SECONDS: Final = 5

#: What stood still.
Stood = Sequence[str]


def pages_of_a_batch() -> Stood:
    """One page has more jobs than are read together, and a look has time for one part of the pages."""
    with scene((batch_members, "_READ_TOGETHER", 2), (batch_job, "_SHARE_OF_LOOK", 0)) as play:
        batch = play.post("/batches", {})["id"]
        for page, jobs in ((4, 1), (9, 3), (20, 1)):
            for key in islice(_keys_on(page), jobs):
                play.post("/jobs", {"type": "sim.effect", "payload": {}, "batch": batch}, key=key)
        play.post(f"/batches/{batch}/close")
        play.passes(120)
        state = play.job(batch).state
    return [f"the batch is {state}"] if state is not State.SUCCEEDED else []


def _keys_on(page: int) -> Iterator[str]:
    """Return keys of jobs on this page of their batch."""
    return (key for key in map(str, count()) if batch_pages.page_number(keyed_job_id(TENANT, key)) == page)


def inner_batches_that_are_cancelled() -> Stood:
    """A run has time to cancel one of them, and their jobs run on for longer than a run takes for each."""
    with scene((batch_job, "_RESERVE", timedelta(days=1))) as play:
        outer = play.post("/batches", {})["id"]
        inner = [play.post("/batches", {"batch": outer})["id"] for _ in range(3)]
        for each in inner:
            play.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 24}, "batch": each})
        play.passes(1)
        play.post(f"/batches/{outer}/cancel")
        play.passes(20)
        return [f"inner batch {number} runs on" for number, each in enumerate(inner) if not _cancelled(play, each)]


def _cancelled(play: Scene, batch: str) -> bool:
    return is_cancelled(play.job(batch))


def nodes_behind_many_busy_groups() -> Stood:
    """To try one node of each takes longer than a run."""
    with scene() as play:
        busy = [_node(f"busy-{number}", group=f"g{number}") for number in range(300)]
        for each in busy:
            play.keep_busy(head_key(TENANT, each["group"]))
        flow = play.post("/flows", {"nodes": [*busy, _node("free", group="free")]})["id"]
        play.passes(1200)
        return _not_free(play, flow)


def a_node_that_is_added_beside_many_busy_groups() -> Stood:
    """Their nodes are dead, and to try to redrive one of each takes longer than a run."""
    with scene() as play:
        dying = [_node(f"busy-{number}", group=f"g{number}", type="sim.permanent") for number in range(300)]
        flow = play.post("/flows", {"nodes": dying})["id"]
        play.passes(600)
        for each in dying:
            play.keep_busy(head_key(TENANT, each["group"]))
        play.post(f"/jobs/{flow}/redrive")
        play.post(f"/flows/{flow}/nodes", {"nodes": [_node("free")]})
        play.passes(180)
        return _not_free(play, flow)


def hops_of_a_flow_with_a_busy_node() -> Stood:
    """It has to look again and again, for longer than its hops would last without a pause."""
    with scene() as play:
        play.keep_busy(head_key(TENANT, "g"))
        flow = play.post("/flows", {"nodes": [_node("busy", group="g")]})["id"]
        play.passes(3600)
        hops = play.job(flow).hops
        return [f"{hops} hops in an hour"] if hops * LONGEST_FLOW / timedelta(hours=1) > LARGEST_MAX_HOPS else []


def _node(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "sim.node", "payload": {"key": name}} | more


def _not_free(play: Scene, flow: str) -> Stood:
    """The others cannot begin."""
    states = {node["name"]: node["state"] for node in play.get(f"/flows/{flow}")["nodes"]}
    return [] if states["free"] == State.SUCCEEDED else [f"the free node is {states['free']}"]


def dead_members_behind_many_busy_groups() -> Stood:
    """To try one of each takes longer than a run."""
    with scene() as play:
        batch = play.post("/batches", {})["id"]
        dies = {"type": "sim.permanent", "payload": {}, "batch": batch}
        for number, key in enumerate(islice(_keys_on(1), 60)):
            play.post("/jobs", dies | {"group": f"g{number}"}, key=key)
        free = play.post("/jobs", dies | {"group": "free"}, key=next(_keys_on(2)))["id"]
        play.post(f"/batches/{batch}/close")
        play.passes(600)
        for number in range(60):
            play.keep_busy(head_key(TENANT, f"g{number}"))
        play.post(f"/jobs/{batch}/redrive")
        play.passes(1200)
        return [] if play.job(free).redrives else ["the free member is not redriven"]


def a_page_of_a_pass() -> Stood:
    """Its groups take several rounds of the command, and nothing of them needs a repair."""
    with scene() as play:
        checks = PassChecks(play.world)

        def submit() -> None:
            for number in range(40):
                waits = Submission(type="sim.effect", payload={}, group=f"g{number}", delay=timedelta(hours=5))
                composition.parts().submit(waits, tenant=TENANT, trace="request")

        play.does(submit)
        play.table_is_slow()
        for _ in range(12):
            done = play.does(_round_of_reconcile)
            if done.table_pass.ended_at:
                checks.at_end()
                return []
        return [f"the pass has read {done.items} items"]


def _round_of_reconcile() -> Any:
    ends = clock.now() + timedelta(seconds=15) + RESERVE
    passes = reconcile.table_passes()
    return reconcile.reconciler().run(passes, time_left=lambda: ends - clock.now()).progress


def owed_work_of_another_partition() -> Stood:
    """One of the partitions has more works that fail than the calls of wake have time for."""
    with scene() as play:
        failing = list(islice(_groups_owed_in(0), 200))
        (other,) = islice(_groups_owed_in(3), 1)
        for work in failing:
            play.world.throttled_items.throttle(head_key(TENANT, work.name)[JOB_KEY]["S"], for_ms=_DAY_MS)

        def owe() -> None:
            for work in [*failing, other]:
                composition.parts().owed_work.owe(work, now=clock.now(), error="busy")

        play.does(owe)
        for _ in range(10):
            play.calls("wake", {WAKE_PART: "0", WAKE_PARTS: "1"})
            play.passes(45)
        stands = owed_key(other)[JOB_KEY]["S"]
        return [f"{other.name} is owed still"] if (stands,) in play.world.jobs.items else []


def _groups_owed_in(partition: int) -> Iterator[Work]:
    """Owed work of four partitions."""
    works = (Work(kind=Kind.ADVANCE, tenant=TENANT, name=f"g{number}") for number in count())
    return (work for work in works if crc32(owed_key(work)[JOB_KEY]["S"].encode()) % 4 == partition)


def scheduled_jobs_behind_one_that_is_held() -> Stood:
    """A transaction holds the first. The last is not of the second in which wake queues the first."""
    with scene((wake, "MOST_PER_SECOND", 2)) as play:
        jobs = []
        for number in range(3):
            body = {"type": "sim.effect", "payload": {}, "delay_seconds": 1_000 + number}
            jobs.append(play.post("/jobs", body)["id"])
        play.keep_busy(document.key(TENANT, jobs[0]))
        play.passes(990)
        play.calls("wake", {WAKE_PART: "0", WAKE_PARTS: "1"})
        states = [play.job(each).state for each in jobs[1:]]
        return [f"job {number} is {state}" for number, state in enumerate(states, 1) if state is State.SCHEDULED]


def a_line_behind_one_with_many_jobs() -> Stood:
    """Two pauses have ended, and to release the jobs of the first takes all the time of many calls of wake."""
    # One thread, as if there were four such lines.
    with scene((wake_function, "RELEASE_TIME", timedelta(seconds=1)), (release, "_AT_ONCE", 1)) as play:
        pauses = ("type=sim.effect", "type=sim.node")
        for each in pauses:
            play.does(partial(pause, each))
        play.passes(20)
        for number in range(200):
            play.post("/jobs", {"type": "sim.effect", "payload": {}}, key=str(number))
        other = play.post("/jobs", {"type": "sim.node", "payload": {"key": "other"}}, key="other")["id"]
        play.passes(20)
        for each in pauses:
            play.does(partial(_resume, each))
        play.passes(20)
        play.calls("wake", {WAKE_PART: "0", WAKE_PARTS: "1"})
        state = play.job(other).state
    return [f"the job of the other line is {state}"] if state is State.PARKED else []


def _resume(target: str) -> None:
    changes = configurator()
    changes.remove(changes.read(), f"pauses.{target}", by="eve", reason="")


def a_migration_that_reads_slowly() -> Stood:
    """The price of a page takes longer than a run, which is killed when its time is over."""
    with scene(page_items=2) as play:
        for number in range(6):
            body = {"type": "sim.effect", "payload": {"padding": "x" * 30_000}, "delay_seconds": 36_000}
            play.post("/jobs", body, key=str(number))
        saved = [Progress()]
        for _ in range(20):
            play.does(partial(_migrate, saved), killed_after=_RUN_SECONDS)
            if saved[-1].complete:
                return []
        return [f"the migration has rewritten {saved[-1].rewritten} payloads"]


def _migrate(saved: list[Progress]) -> None:
    """One run, from the last progress that was saved."""
    ends = clock.now() + timedelta(seconds=_RUN_SECONDS - 1)
    progress = (
        composition.parts()
        .migrator(rate=100, read_units=1)
        .run(
            Migration(type="sim.effect", ended=False, dry_run=False),
            lambda payload: {**payload, "key": "new"},
            saved[-1],
            time_left=lambda: ends - clock.now(),
            save=saved.append,
            failed=lambda *_details: None,
        )
    )
    saved.append(progress)


def a_breaker_whose_calls_fail_in_one_worker() -> Stood:
    """Others are served meanwhile."""
    broken = list[str]()

    def fails(process: str, _tenant: str) -> bool:
        if not broken:
            broken.append(process)
        return process in broken

    return _stops_others(fails)


def a_breaker_whose_calls_fail_for_one_tenant() -> Stood:
    """The jobs of another tenant share its workers."""
    return _stops_others(lambda _process, tenant: tenant == TENANTS[1])


def _stops_others(fails: Callable[[str, str], bool]) -> Stood:
    with scene() as play:
        play.world.downstreams[PAYMENTS].fails_for = fails
        for number in range(20):
            play.does(partial(_submit_dependents, number))
            play.passes(1)
        (breaker,) = (item for key, item in play.world.jobs.items.items() if key == (f"!breaker#{PAYMENTS}",))
        return ["the breaker stops the calls of all"] if "circuit" in breaker else []


def _submit_dependents(number: int) -> None:
    for tenant in TENANTS:
        for each in range(10):
            submission = Submission(type="sim.dependent", payload={}, key=f"{number} {each}")
            composition.parts().submit(submission, tenant=tenant, trace="request")


def runs_while_the_clock_is_set() -> Stood:
    """By an hour, forward or back, while a quick run and one without end are under way."""
    return [f"set by {hours} h: {each}" for hours in (1, -1) for each in _while_set(hours)]


def _while_set(hours: int) -> Iterator[str]:
    with scene() as play:
        quick, endless = (
            play.post("/jobs", {"type": "sim.effect", "payload": {"seconds": seconds}}, key=str(seconds))["id"]
            for seconds in (5, 10_000)
        )
        play.passes(4)
        running = [play.job(each).state is State.RUNNING for each in (quick, endless)]
        assert all(running), "the clock must be set while both run"
        play.world.wall_step_ms = hours * 3_600_000
        play.passes(4)
        job = play.job(quick)
        if (job.state, job.attempt) != (State.SUCCEEDED, 1):
            yield f"the quick job is {job.state}, attempt {job.attempt}"
        if play.job(endless).errors:
            yield "the other job fails before its time is over"
        play.passes(play.world.deployment.lane(job.lane).job_timeout_seconds)
        if [each.error_class for each in play.job(endless).errors] != ["JobTimeoutError"]:
            yield "the other job goes on beyond its time"


PLAYS: Final[Mapping[str, Callable[[], Stood]]] = {
    "pages of a batch": pages_of_a_batch,
    "inner batches that are cancelled": inner_batches_that_are_cancelled,
    "nodes behind many busy groups": nodes_behind_many_busy_groups,
    "a node that is added beside many busy groups": a_node_that_is_added_beside_many_busy_groups,
    "hops of a flow with a busy node": hops_of_a_flow_with_a_busy_node,
    "dead members behind many busy groups": dead_members_behind_many_busy_groups,
    "a page of a pass": a_page_of_a_pass,
    "owed work of another partition": owed_work_of_another_partition,
    "scheduled jobs behind one that is held": scheduled_jobs_behind_one_that_is_held,
    "a line behind one with many jobs": a_line_behind_one_with_many_jobs,
    "a migration that reads slowly": a_migration_that_reads_slowly,
    **PRICED,
    "a breaker whose calls fail in one worker": a_breaker_whose_calls_fail_in_one_worker,
    "a breaker whose calls fail for one tenant": a_breaker_whose_calls_fail_for_one_tenant,
    "runs while the clock is set": runs_while_the_clock_is_set,
}

__all__ = ["PLAYS", "Stood"]
