"""One seed: jobs run, the table is restored to an earlier moment and recovered, and the functions change over to it."""

import traceback
from datetime import timedelta
from random import Random
from typing import Final

from tests.simulation.actors.api_gateway import ACCEPTED, as_json, ask
from tests.simulation.actors.eventbridge_scheduler import EventBridgeScheduler
from tests.simulation.checks.violation import Violation
from tests.simulation.deployment import Deployment
from tests.simulation.restore.change_over import RESTORED, deploy, restored_table
from tests.simulation.restore.checks import check
from tests.simulation.restore.claims import note_messages
from tests.simulation.restore.restore_state import Restore, Result
from tests.simulation.restore.restoring_operator import RestoringOperator
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Process, StalledError
from tests.simulation.world.world import World
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission

TENANT: Final = "111122223333:AROAADA"
_GROUP: Final = "unreadable"
#: None of them loses a message, so that every loss is one of the recovery.
_FAULTS: Final = frozenset(
    {
        Fault.NOT_SENT,
        Fault.ANSWER_LOST,
        Fault.SERVER_ERROR,
        Fault.SLOW_CALL,
        Fault.KILLED_BEFORE,
        Fault.KILLED_AFTER,
        Fault.TIMED_OUT,
        Fault.NOT_STARTED,
        Fault.COLD_START,
        Fault.CLOCK_SKEW,
        Fault.DUPLICATE,
        Fault.STREAM_REPEATED,
    }
)
#: With more kills, no call of an operator comes to an end within the hour.
_LARGEST_RATES: Final = {Fault.KILLED_BEFORE: 0.02, Fault.KILLED_AFTER: 0.02}
_MOST_STEPS: Final = 1_000_000
_JOBS: Final = 14
_SUBMITTED_WITHIN_MS: Final = 240_000
#: Share of the seeds in which the former table's stream has a backlog until publish has changed over.
_STALLED: Final = 0.3
#: Share of the documents.
_DAMAGED: Final = 0.3
#: Share of the seeds with a group whose head cannot be read.
_UNREADABLE: Final = 0.3
_LATER_SCHEMA: Final = 99
#: Less than the limit of reconcile, so that reconcile cannot find what the recovery has forgotten.
REST_MS: Final = 2 * 3_600_000
_PLANS: Final = (
    ("sim.effect", {"seconds": 0}),
    ("sim.effect", {"seconds": 24}),
    ("sim.effect", {"fails": 2, "seconds": 1}),
    ("sim.effect", {"fails": 9}),
    ("sim.plain", {"count": 1}),
    ("sim.steps", {"count": 3, "seconds": 6}),
    ("sim.continue", {"count": 2, "seconds": 1}),
    ("sim.snooze", {"count": 2, "seconds": 20}),
    ("sim.snooze", {"count": 2, "seconds": 6}),
)


def play(seed: int) -> Result:
    random = Random(f"restore {seed}")
    faults = Faults(random)
    faults.rates = {
        fault: min(rate, _LARGEST_RATES.get(fault, rate)) for fault, rate in faults.rates.items() if fault in _FAULTS
    }
    with World(seed, Deployment(), faults=faults) as world:
        restore = Restore(world)
        try:
            _run(restore, random)
            return check(restore, seed)
        except Violation as found:
            violation = found
        except StalledError as stalled:
            violation = Violation("the simulation comes to rest", str(stalled), "*")
        except Exception as broken:  # noqa: BLE001 - report every failure with its seed
            violation = Violation("no unexpected exception", "".join(traceback.format_exception(broken)[-3:]), "*")
        return Result(seed=seed, violation=violation, story=world.trace.story(violation.about))


def _run(restore: Restore, random: Random) -> None:
    world, scheduler = restore.world, restore.world.scheduler
    EventBridgeScheduler(world).begin()
    for lane in world.lanes:
        note_messages(restore, world.functions[f"work-{lane}"])
    for number in range(_JOBS):
        at_ms = scheduler.now_ms + random.randint(0, _SUBMITTED_WITHIN_MS)
        scheduler.at(at_ms, _submit, restore, _submission(random, number), number)
    if Random(f"unreadable head {world.seed}").random() < _UNREADABLE:
        head = Submission(type="sim.effect", key="head", group=_GROUP, delay=timedelta(days=2))
        scheduler.at(scheduler.now_ms, _submit, restore, head, _JOBS)
    scheduler.run(until_ms=scheduler.now_ms + random.randint(20_000, _SUBMITTED_WITHIN_MS), most_steps=_MOST_STEPS)
    _end_unreadably(restore)
    restore.restored_to_ms = scheduler.now_ms
    restore.point = dict(world.jobs.items)
    world.log("backup", "restore point")
    world.stream.stalled = random.random() < _STALLED
    incident_ms = scheduler.now_ms + random.choice([1_000, 30_000, 300_000])
    scheduler.run(until_ms=incident_ms, most_steps=_MOST_STEPS)
    _damage(restore, random)
    operator = RestoringOperator(world)
    operator.pause()
    scheduler.run(until_ms=scheduler.now_ms + 3_600_000, most_steps=_MOST_STEPS, over=lambda: operator.paused)
    # A pause acts within this time.
    scheduler.run(until_ms=scheduler.now_ms + 30_000, most_steps=_MOST_STEPS)
    restore.restored = restored_table(restore)
    restore.recovery_began_ms = scheduler.now_ms
    operator.recover(RESTORED)
    scheduler.run(until_ms=scheduler.now_ms + 3_600_000, most_steps=_MOST_STEPS, over=lambda: operator.recovered)
    if not operator.recovered:
        raise Violation("a recovery comes to an end", "it has not within an hour", "*")
    restore.report, restore.epoch = operator.report, operator.epoch
    deploy(restore, random)
    world.faults.stopped = True
    scheduler.run(until_ms=scheduler.now_ms + REST_MS, most_steps=_MOST_STEPS)


def _end_unreadably(restore: Restore) -> None:
    """A later version of the code has ended the head of the group. This one cannot read its document."""
    items = restore.world.jobs.items
    for key, item in items.items():
        if item.get("group") == {"S": _GROUP} and "state" in item:
            kept = {name: value for name, value in item.items() if name not in {"due", "attention", "attention_at"}}
            items[key] = {**kept, "schema": {"N": str(_LATER_SCHEMA)}, "state": {"S": State.SUCCEEDED}}
            restore.unreadable_groups.add(f"{TENANT}#{_GROUP}")


def _damage(restore: Restore, random: Random) -> None:
    """The reason for the restore: an operator deletes documents by mistake."""
    jobs = restore.world.jobs
    for key in [key for key, item in jobs.items.items() if "state" in item and random.random() < _DAMAGED]:
        restore.world.log("mistaken operator", f"deletes {key}")
        restore.damaged.add(key[0])
        jobs.put(key, None, now_ms=restore.world.scheduler.now_ms)


def _submission(random: Random, number: int) -> Submission:
    kind, payload = random.choice(_PLANS)
    delay = timedelta(seconds=random.choice([0, 0, 0, 0, 30, 400, 1000]))
    group = random.choice([None, None, None, "orders"])
    return Submission(type=kind, payload=payload, key=f"key-{number}", group=group, delay=delay or None)


def _submit(restore: Restore, submission: Submission, number: int) -> None:
    world = restore.world

    def submit() -> None:
        for _ in range(5):
            answer = ask(world, "submit", "POST", "/jobs", tenant=TENANT, key=submission.key, body=as_json(submission))
            if answer and answer.status in {ACCEPTED, 200}:
                return
            world.scheduler.sleep(1_000)

    world.scheduler.spawn(Process(f"caller {number}"), submit)
