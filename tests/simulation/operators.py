"""What operators and clocks do, in the worst of moments and when all is quiet again."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final

from shared.adapters import clients, clock, composition
from shared.adapters.queues import SqsLetterBox
from shared.application.reconcile import Reconciler
from shared.application.redrive import Redriver, Selection
from shared.domain.errors import WriteRefusedError
from shared.domain.states import TERMINAL, State
from shared.names import WAKE_INTERVAL_SECONDS, WAKE_WINDOW_SECONDS
from tests.simulation.deployment import has_function
from tests.simulation.people import in_a_tool, present
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambdas import FunctionError, Throttled
from tests.simulation.world.scheduler import Process
from tests.simulation.world.table import Record
from tests.simulation.world.world import World

_WAKE_MS: Final = WAKE_INTERVAL_SECONDS * 1000
_RELEASE_MS: Final = 3_600_000
_DAY_MS: Final = 86_400_000


class Operators:
    """The people of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._poller = Process("scheduler")
        self._next_wake_ms = 0

    def meddle(self, until_ms: int) -> None:
        """Draw what they will do before that moment: at any time, or just when it hurts."""
        world = self._world
        begin_ms = world.scheduler.now_ms
        for fault, act in (
            (Fault.REDRIVEN, self.redrive),
            (Fault.REDRIVEN, self.redrive),
            (Fault.REDRIVEN_TWICE, self.redrive_twice),
            (Fault.LETTERS_MOVED, self.move_letters),
            (Fault.RECONCILED, self.reconcile),
            (Fault.RECONCILED, self.reconcile),
        ):
            if world.weather.strikes(fault):
                world.scheduler.at(world.random.randint(begin_ms, until_ms), act)
        for _ in range(3):
            if world.weather.strikes(Fault.CALLED_OFF):
                state = world.random.choice([State.QUEUED, State.RUNNING, State.RUNNING, State.RETRYING, State.WAITING])
                self._lie_in_wait(state, self.cancel)
        if world.weather.strikes(Fault.REDRIVEN_TWICE):
            self._lie_in_wait(State.DEAD, self._fight_over)
        if world.weather.strikes(Fault.CALLED_OFF):
            world.jobs.watchers.append(self._cancel_the_next)
        for queue in world.lanes.values():
            queue.found_watchers.append(self._reconcile_about)

    def _lie_in_wait(self, state: State, act: Callable[[str], None]) -> None:
        """Act on a job shortly after it comes into a state."""
        world = self._world
        left = [world.random.randint(1, 4)]

        def look(record: Record) -> None:
            entered = state_of_item(record.after) == state != state_of_item(record.before)
            if not entered or not left or world.weather.calm:
                return
            left[0] -= 1
            if left[0] == 0:
                left.clear()
                delay_ms = world.random.choice([0, 5, 20, 1000])
                world.scheduler.after(world.random.randint(0, delay_ms), act, record.keys["pk"]["S"])

        world.jobs.watchers.append(look)

    def _cancel_the_next(self, record: Record) -> None:
        """Whose turn it is about to be."""
        world, ended = self._world, record.after or {}
        if state_of_item(ended) not in TERMINAL or "group" not in ended or world.weather.calm:
            return
        waiting = sorted(
            key[0]
            for key, item in world.jobs.items.items()
            if state_of_item(item) == State.WAITING and item["group"] == ended["group"]
        )
        if waiting and world.weather.strikes(Fault.CALLED_OFF):
            world.scheduler.after(world.random.randint(0, 40), self.cancel, world.random.choice(waiting))

    def cancel(self, key: str) -> None:
        world = self._world
        tenant, _, job_id = key.rpartition("#")

        def act(_process: Process) -> None:
            if (job := composition.store().get(tenant, job_id)) is not None:
                world.say("ada", f"cancels {job_id}")
                with suppress(WriteRefusedError):
                    composition.store().cancel(job, now=present())

        in_a_tool(world, "ada", act)

    def _fight_over(self, key: str) -> None:
        """One redrives what the other discards."""
        tenant, _, job_id = key.rpartition("#")

        def act(_process: Process) -> None:
            if (job := composition.store().get(tenant, job_id)) is not None:
                with suppress(WriteRefusedError):
                    composition.store().redrive(job, token=clock.new_token(), now=present(), by="bob")

        in_a_tool(self._world, "bob", act)
        self.cancel(key)

    def _reconcile_about(self, found_ms: int) -> None:
        """A message that was given up turns up while its job is being looked after, and by more than one."""
        scheduler = self._world.scheduler
        for _ in range(3):
            scheduler.at(max(found_ms - scheduler.random.randint(-40, 60), scheduler.now_ms), self.reconcile)

    def redrive(self) -> None:
        in_a_tool(self._world, "ada", partial(self._redrive, "ada"))

    def redrive_twice(self) -> None:
        for name in ("ada", "bob"):
            in_a_tool(self._world, name, partial(self._redrive, name))

    def _redrive(self, name: str, _process: Process) -> None:
        redriver = Redriver(store=composition.store(), clock=present, new_token=clock.new_token)
        for job in list(redriver.plan(Selection())):
            redriver.redrive(job, by=name)
        for urls in composition.lane_urls().values():
            redriver.sweep(SqsLetterBox(clients.sqs(), urls.letters))

    def move_letters(self) -> None:
        """The console's redrive: SQS moves what is in a dead-letter queue back to the lane, as new messages."""
        for lane, letters in self._world.letters.items():
            moved, letters.messages = letters.messages, []
            for letter in moved:
                self._world.say("console", f"moves a letter of {lane} back")
                self._world.lanes[lane].send(letter.body, attributes=letter.attributes)

    def reconcile(self) -> None:
        if has_function("reconcile"):
            self._world.scheduler.spawn(self._poller, lambda: self._call("reconcile"))
        else:
            in_a_tool(self._world, "reconcile", self._reconcile)

    def _reconcile(self, _process: Process) -> None:
        limit = timedelta(seconds=self._world.deployment.stage.reconcile_limit_seconds)
        reconciler = Reconciler(store=composition.store(), clock=present, limit=limit)
        for job in list(reconciler.overdue()):
            reconciler.nudge(job)

    def tick(self) -> None:
        """Have the clock of scheduled jobs go on by itself. Minutes with nothing to wake are passed over."""
        self._world.jobs.watchers.append(lambda record: self._look(record.after))
        self._daily()

    def release_groups(self) -> None:
        """A dead head with `block` stands until a person acts: they redrive it once, and then cancel it."""
        in_a_tool(self._world, "ada", self._release)
        self._world.scheduler.after(_RELEASE_MS, self.release_groups)

    def _release(self, _process: Process) -> None:
        store = composition.store()
        for job in list(store.dead()):
            if job.blocks and not job.expired(present()):
                with suppress(WriteRefusedError):
                    if job.redrives:
                        store.cancel(job, now=present())
                    else:
                        store.redrive(job, token=clock.new_token(), now=present(), by="ada")

    def _daily(self) -> None:
        self.reconcile()
        self._world.scheduler.after(_DAY_MS, self._daily)

    def _look(self, item: Any) -> None:
        if item and item.get("state", {}).get("S") == State.SCHEDULED:
            wake_ms = int(item["due"]["N"]) - WAKE_WINDOW_SECONDS * 1000
            tick_ms = (max(wake_ms, self._world.scheduler.now_ms) // _WAKE_MS + 1) * _WAKE_MS
            self._world.scheduler.at(tick_ms, self._tick, tick_ms)

    def _tick(self, tick_ms: int) -> None:
        """At every minute while something waits that is due soon; the index may be behind, so the next will see it."""
        world = self._world
        if tick_ms <= self._next_wake_ms:
            return
        self._next_wake_ms = tick_ms
        for _ in range(2 if world.weather.strikes(Fault.CLOCK_TWICE) else 1):
            if has_function("wake"):
                world.scheduler.spawn(self._poller, lambda: self._call("wake"))
            else:
                in_a_tool(world, "wake", self._wake)
        if world.weather.strikes(Fault.CALLED_OFF):
            waiting = sorted(key[0] for key, item in world.jobs.items.items() if state_of_item(item) == State.SCHEDULED)
            if waiting:
                world.scheduler.after(world.random.randint(0, 40), self.cancel, world.random.choice(waiting))
        soon_ms = world.scheduler.now_ms + WAKE_WINDOW_SECONDS * 1000
        if any(
            item.get("state", {}).get("S") == State.SCHEDULED and int(item["due"]["N"]) <= soon_ms + _WAKE_MS
            for item in world.jobs.items.values()
        ):
            world.scheduler.at(tick_ms + _WAKE_MS, self._tick, tick_ms + _WAKE_MS)

    def _wake(self, _process: Process) -> None:
        store = composition.store()
        for job in store.scheduled(before=present() + timedelta(seconds=WAKE_WINDOW_SECONDS)):
            try:
                store.wake(job)
            except WriteRefusedError as refused:
                self._world.say("wake", str(refused))

    def _call(self, function: str) -> None:
        try:
            answer = self._world.functions[function].invoke({})
        except Throttled:
            answer = FunctionError("throttled")
        if isinstance(answer, FunctionError):
            self._world.say("scheduler", f"*{function}: {answer.what}")


def state_of_item(item: Any) -> str | None:
    """None for what is no job."""
    return item["state"]["S"] if item and "state" in item else None
