"""Operators that cancel, redrive and reconcile at critical moments, and release blocked groups after the faults."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from tests.simulation.actors.callers import run_tool
from tests.simulation.actors.operator_objects import redriver
from tests.simulation.actors.stale_operators import StaleOperators
from tests.simulation.checks.violation import require_in_task, tenant_of
from tests.simulation.jobs.handler_runs import HandlerRun
from tests.simulation.world.code_versions import job_type
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import Throttled
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.application.dispatch.dead_letter_sweep import sweep
from tidemill.application.job_filter import ANY_JOB
from tidemill.aws import clients
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.states import TERMINAL, State
from tidemill.dynamodb import document
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue
from tidemill.system import clock, ids

_RESET_BY_REDRIVE: Final = ("cancel_requested_at", "hops", "nudges", "releases", "deadline", "useful_until")
#: In the audit entries of some actions.
_REASON: Final = "as the owner asked"
_RELEASE_MS: Final = 3_600_000


class Operators:
    """The operators of one world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def plan(self, until_ms: int) -> None:
        """Draw their actions before that time: at random times and at critical moments."""
        world = self._world
        begin_ms = world.scheduler.now_ms
        for fault, act in (
            (Fault.REDRIVEN, self.redrive),
            (Fault.REDRIVEN, self.redrive),
            (Fault.REDRIVEN_TWICE, self.redrive_twice),
            (Fault.DLQ_MOVED_NATIVELY, self.move_dlq_messages),
            (Fault.RECONCILED, self.reconcile),
            (Fault.RECONCILED, self.reconcile),
        ):
            if world.faults.occurs(fault):
                world.scheduler.at(world.random.randint(begin_ms, until_ms), act)
        self._plan_at_critical_moments()
        for queue in world.lanes.values():
            queue.return_watchers.append(self._reconcile_around)
        StaleOperators(world).begin()

    def _plan_at_critical_moments(self) -> None:
        """Watch the jobs table for critical moments."""
        world = self._world
        for _ in range(3):
            if world.faults.occurs(Fault.OPERATOR_CANCELS):
                state = world.random.choice([State.QUEUED, State.RUNNING, State.RUNNING, State.RETRYING, State.WAITING])
                self._act_after_entering(state, self.cancel)
        if world.faults.occurs(Fault.REDRIVEN_TWICE):
            self._act_after_entering(State.DEAD, self._redrive_and_cancel)
        world.jobs.watchers.append(self._redrive_marked)
        world.jobs.watchers.append(self._cancel_next_of_group)
        if world.faults.occurs(Fault.OPERATOR_CANCELS):
            world.run_end_watchers.append(self._cancel_at_end_of_run)
        world.jobs.watchers.append(self._cancel_before_death)
        if world.faults.occurs(Fault.OPERATOR_CANCELS):
            world.jobs.watchers.append(self._cancel_scheduled)

    def _act_after_entering(self, state: State, act: Callable[[str], None]) -> None:
        """Act on a job shortly after it enters a state."""
        world = self._world
        left = [world.random.randint(1, 4)]

        def look(record: Record) -> None:
            entered = state_of_item(record.after) == state != state_of_item(record.before)
            if not entered or not left or world.faults.stopped:
                return
            left[0] -= 1
            if left[0] == 0:
                left.clear()
                delay_ms = world.random.choice([0, 5, 20, 1000])
                world.scheduler.after(world.random.randint(0, delay_ms), act, record.keys["pk"]["S"])

        world.jobs.watchers.append(look)

    def _cancel_next_of_group(self, record: Record) -> None:
        """Cancel the job that is next in its group."""
        world, ended = self._world, record.after or {}
        just = state_of_item(ended) in TERMINAL and state_of_item(record.before) != state_of_item(ended)
        if not just or "group" not in ended or world.faults.stopped:
            return
        tenant = tenant_of(record.keys["pk"]["S"])
        waiting = sorted(
            (int(item["sequence"]["N"]), key[0])
            for key, item in world.jobs.items.items()
            if state_of_item(item) == State.WAITING and item["group"] == ended["group"] and tenant_of(key[0]) == tenant
        )
        if waiting and world.faults.occurs(Fault.OPERATOR_CANCELS):
            # Some milliseconds after `advance` has read the job and before it writes it.
            world.scheduler.after(world.random.randint(5, 40), self.cancel, waiting[0][1])

    def _cancel_scheduled(self, record: Record) -> None:
        """Cancel a scheduled job while `wake` queues another."""
        woken = state_of_item(record.before) == State.SCHEDULED and state_of_item(record.after) == State.QUEUED
        if woken and not self._world.faults.stopped:
            items = self._world.jobs.items.items()
            waiting = sorted(key[0] for key, item in items if state_of_item(item) == State.SCHEDULED)
            if waiting and self._world.faults.occurs(Fault.OPERATOR_CANCELS):
                delay_ms = self._world.random.randint(0, 40)
                self._world.scheduler.after(delay_ms, self.cancel, self._world.random.choice(waiting))

    def _redrive_marked(self, record: Record) -> None:
        """Redrive a dead job that has fields for the redrive to reset."""
        died = state_of_item(record.after) == State.DEAD != state_of_item(record.before)
        marked = died and any(name in (record.after or {}) for name in _RESET_BY_REDRIVE)
        if marked and self._world.faults.occurs(Fault.REDRIVEN):
            self._world.scheduler.after(self._world.random.randint(0, 1000), self._redrive_one, record.keys["pk"]["S"])

    def _cancel_before_death(self, record: Record) -> None:
        """Request cancellation during the run in which the job dies, so that a redrive must clear the request."""
        item = record.after or {}
        if state_of_item(item) == State.RUNNING != state_of_item(record.before):
            last = int(item["attempt"]["N"]) >= job_type(item["type"]["S"]).retry.max_attempts
            dies = last or item["type"]["S"] == "sim.permanent"
            if dies and self._world.faults.occurs(Fault.OPERATOR_CANCELS):
                self.cancel(record.keys["pk"]["S"])

    def _cancel_at_end_of_run(self, run: HandlerRun) -> None:
        if self._world.faults.occurs(Fault.OPERATOR_CANCELS):
            self.cancel(run.key)

    def cancel(self, key: str) -> None:
        """Cancel by a copy of the document that is stale when the write arrives."""
        world = self._world
        seen = world.jobs.items.get((key,))

        def act(_process: Process) -> None:
            if seen is not None:
                world.log("ada", f"cancels {key.rpartition('#')[2]}")
                try:
                    composition.parts().store.cancel(document.decode(dict(seen)), now=clock.now(), reason=_REASON)
                except WriteRefusedError as refused:
                    ended = refused.current is None or refused.current.state in {State.SUCCEEDED, State.EXPIRED}
                    self._require(ended or bool(world.rollout.planned), f"cancel: {refused}", key)

        run_tool(world, "ada", act)

    def _require(self, holds: bool, what: str, key: str) -> None:
        require_in_task(self._world.scheduler, holds, "a refused write has its reason", what, key)

    def _redrive_and_cancel(self, key: str) -> None:
        """One operator redrives the job while another cancels it."""
        self._redrive_one(key)
        self.cancel(key)

    def _redrive_one(self, key: str) -> None:
        tenant, _, job_id = key.rpartition("#")

        def act(_process: Process) -> None:
            if (job := composition.parts().store.get(tenant, job_id)) is not None:
                try:
                    composition.parts().store.redrive(
                        job, token=ids.new_token(), now=clock.now(), by="bob", reason=_REASON
                    )
                except WriteRefusedError as refused:
                    found = refused.current
                    same = found and (found.state, found.generation) == (State.DEAD, job.generation)
                    self._require(not same or bool(self._world.rollout.planned), f"redrive: {refused}", key)

        run_tool(self._world, "bob", act)

    def _reconcile_around(self, found_ms: int) -> None:
        """A message returns hours late while several reconcile runs repair its job."""
        scheduler = self._world.scheduler
        for _ in range(3):
            scheduler.at(max(found_ms - scheduler.random.randint(-40, 60), scheduler.now_ms), self.reconcile)

    def redrive(self) -> None:
        run_tool(self._world, "ada", partial(self._redrive, "ada"))

    def redrive_twice(self) -> None:
        for name in ("ada", "bob"):
            run_tool(self._world, name, partial(self._redrive, name))

    def _redrive(self, name: str, _process: Process) -> None:
        redrive = redriver()
        for job in list(redrive.dead_jobs(ANY_JOB)):
            redrive.redrive(job, by=name)
        for urls in composition.parts().lane_urls.values():
            sweep(
                SqsDeadLetterQueue(clients.sqs(), urls.dead_letters), store=composition.parts().store, clock=clock.now
            )

    def move_dlq_messages(self) -> None:
        """The redrive of the SQS console: it moves DLQ messages back to the lane as new messages."""
        for lane, dead_letters in self._world.dead_letters.items():
            moved, dead_letters.messages = dead_letters.messages, []
            for dead_letter in moved:
                self._world.log("console", f"moves a letter of {lane} back")
                self._world.lanes[lane].send(dead_letter.body, attributes=dead_letter.attributes)

    def reconcile(self) -> None:
        """An operator invokes the function and does not retry it."""

        def invoke() -> None:
            with suppress(Throttled):
                self._world.functions["reconcile"].invoke({})

        self._world.scheduler.spawn(Process("somebody"), invoke)

    def release_groups(self) -> None:
        """A dead job with `on_dead="block"` at the head blocks its group. Operators redrive it once, then cancel it."""
        if any(state_of_item(item) == State.DEAD and "blocks" in item for item in self._world.jobs.items.values()):
            run_tool(self._world, "ada", self._release)
        self._world.scheduler.after(_RELEASE_MS, self.release_groups)

    def _release(self, _process: Process) -> None:
        store = composition.parts().store
        for job in list(store.dead()):
            if job.group.blocks and not job.lifetime.over(clock.now()):
                with suppress(WriteRefusedError):
                    if job.redrives:
                        store.cancel(job, now=clock.now())
                    else:
                        store.redrive(job, token=ids.new_token(), now=clock.now(), by="ada")


def state_of_item(item: Any) -> str | None:
    """None for an item that is not a job."""
    return item["state"]["S"] if item and "state" in item else None
