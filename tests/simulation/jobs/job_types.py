"""One job type for each feature of a handler. Each success writes its effect in the transaction that settles it.

Each run records its beginning and end in the world, for the checks.
"""

import time
from datetime import timedelta
from typing import Any

from pydantic import BaseModel

from tests.simulation.jobs.handler_runs import BrokenError, crash_process, effect, running
from tests.simulation.jobs.odd_values import ODD_VALUES, OddPlan
from tests.simulation.world.installed_patches import world
from tidemill import (
    Adaptive,
    Breaker,
    Cancelled,
    Continue,
    Done,
    GiveUp,
    Lane,
    MissingInput,
    PermanentJobError,
    Rate,
    RetryAfter,
    Run,
    Snooze,
    Submission,
    WaitFor,
    job_type,
)
from tidemill.system import clock


class Plan(BaseModel):
    """The behaviour of one job."""

    #: Number of attempts that fail before one succeeds.
    fails: int = 0
    #: Duration of a step.
    seconds: float = 0.0
    #: Number of steps, continuations or follow-up jobs.
    count: int = 0
    #: Limit key.
    key: str = ""
    #: Makes the payload and the result large.
    padding: str = ""
    #: A text that no other tenant may see. Empty in a story.
    canary: str = ""

    @property
    def secret(self) -> dict[str, str]:
        """For its result."""
        return {"canary": self.canary} if self.canary else {}

    @property
    def about(self) -> str:
        """For the end of a text of an error."""
        return f" of {self.canary}" if self.canary else ""

    def failure(self, run: Run) -> BrokenError:
        return BrokenError(f"attempt {run.attempt}{self.about}")


def take_step(plan: Plan, run: Run) -> None:
    time.sleep(plan.seconds)
    if run.attempt <= plan.fails:
        raise plan.failure(run)


@job_type("sim.effect", payload=Plan, max_attempts=4, backoff_cap_seconds=60)
def an_effect(plan: Plan, run: Run) -> Done:
    with running(run):
        take_step(plan, run)
        return Done(result={"attempt": run.attempt}, writes=[effect(run)])


@job_type("sim.urgent", payload=Plan, lane=Lane.CRITICAL, max_attempts=3, backoff_cap_seconds=2_000, backoff_seconds=90)
def urgent(plan: Plan, run: Run) -> Done:
    with running(run):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type("sim.plain", payload=Plan, max_attempts=3, backoff_seconds=1, retention_days=0.02)
def plain(plan: Plan, run: Run) -> Any:
    with running(run):
        take_step(plan, run)
        return {"n": plan.count, "padding": plan.padding} | plan.secret


@job_type("sim.sheddable", payload=Plan, max_attempts=3, importance="sheddable")
def sheddable(plan: Plan, run: Run) -> Done:
    with running(run):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type("sim.deferrable", payload=Plan, max_attempts=3, importance="deferrable")
def deferrable(plan: Plan, run: Run) -> Done:
    with running(run):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type("sim.permanent", payload=Plan, retention_days=0.01)
def permanent(plan: Plan, run: Run) -> None:
    with running(run):
        take_step(plan, run)
        raise PermanentJobError("never")


@job_type("sim.repaired", payload=Plan)
def repaired(plan: Plan, run: Run) -> Done:
    """Dies until what it needs is repaired, `count` minutes after its submission."""
    with running(run):
        if clock.now() < run.submitted_at + timedelta(minutes=plan.count):
            raise PermanentJobError("never")
        return Done(writes=[effect(run)])


@job_type("sim.give-up", payload=Plan)
def gives_up(plan: Plan, run: Run) -> Any:
    with running(run):
        take_step(plan, run)
        return GiveUp("no use") if plan.count else Cancelled()


@job_type("sim.refused", payload=Plan, max_attempts=3, backoff_cap_seconds=20)
def refused(plan: Plan, run: Run) -> Done:
    """A condition of its own write cancels the transaction that would settle it."""
    with running(run):
        return Done(writes=[effect(run, refused=run.attempt <= plan.fails)])


@job_type("sim.later", payload=Plan, max_attempts=4)
def later(plan: Plan, run: Run) -> Done:
    with running(run):
        if run.attempt <= plan.fails:
            raise RetryAfter(plan.seconds * 60)
        return Done(writes=[effect(run)])


@job_type("sim.chain", payload=Plan, max_attempts=4, backoff_cap_seconds=30)
def chain(plan: Plan, run: Run) -> Done:
    with running(run):
        take_step(plan, run)
        following = [
            Submission(type="sim.effect", payload={"fails": index % 2, "padding": plan.padding}, group=run.group)
            for index in range(plan.count)
        ]
        return Done(result={"then": len(following)}, writes=[effect(run)], then=following)


@job_type("sim.snooze", payload=Plan, max_attempts=3, backoff_cap_seconds=30, max_hops=8)
def snoozes(plan: Plan, run: Run) -> Any:
    with running(run):
        if clock.now() < run.submitted_at + timedelta(seconds=60 * plan.count):
            return Snooze(timedelta(seconds=60 * plan.seconds + 1))
        return Done(writes=[effect(run)])


@job_type("sim.continue", payload=Plan, max_attempts=3, backoff_cap_seconds=30)
def continues(plan: Plan, run: Run) -> Any:
    with running(run):
        page = run.resumed_from or 0
        if page < plan.count:
            time.sleep(plan.seconds)
            return Continue(page + 1)
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type("sim.steps", payload=Plan, lane=Lane.BULK, max_attempts=4, backoff_cap_seconds=30, timeout_seconds=20)
def steps(plan: Plan, run: Run) -> Done:
    with running(run) as seen:
        for step in range(run.resumed_from or 0, plan.count):
            time.sleep(plan.seconds)
            run.checkpoint(step + 1, done=step + 1, total=plan.count)
            seen.saved = step + 1
        return Done(writes=[effect(run)])


@job_type(
    "sim.overrun",
    payload=Plan,
    max_attempts=3,
    backoff_cap_seconds=20,
    timeout_seconds=2,
    concurrency_per_key=1,
    key=lambda plan: plan.key,
)
def overrun(plan: Plan, run: Run) -> Done:
    """Its first attempts exceed the time of the type, and do not look whether it is over."""
    with running(run, limit_key=plan.key):
        time.sleep(plan.seconds if run.attempt <= plan.fails else 0)
        return Done(writes=[effect(run)])


@job_type("sim.blocking", payload=Plan, max_attempts=2, backoff_cap_seconds=10, on_dead="block")
def blocking(plan: Plan, run: Run) -> Done:
    with running(run):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type(
    "sim.limited",
    payload=Plan,
    max_attempts=4,
    backoff_cap_seconds=20,
    concurrency_per_key=1,
    key=lambda plan: plan.key,
    across_tenants=True,
)
def limited(plan: Plan, run: Run) -> Done:
    with running(run, limit_key=plan.key):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type(
    "sim.slots", payload=Plan, max_attempts=3, backoff_cap_seconds=20, concurrency_per_key=2, key=lambda plan: plan.key
)
def slots(plan: Plan, run: Run) -> Done:
    with running(run, limit_key=plan.key):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type(
    "sim.adaptive",
    payload=Plan,
    max_attempts=3,
    backoff_cap_seconds=20,
    concurrency_per_key=Adaptive(floor=1, ceiling=3, target_seconds=2),
    key=lambda plan: plan.key,
)
def adaptive(plan: Plan, run: Run) -> Done:
    with running(run, limit_key=plan.key):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type(
    "sim.paced",
    payload=Plan,
    max_attempts=3,
    backoff_cap_seconds=2,
    rate_per_key=Rate(count=2, period=timedelta(minutes=2)),
    key=lambda plan: plan.key,
)
def paced(plan: Plan, run: Run) -> Done:
    with running(run, limit_key=plan.key):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type(
    "sim.metered",
    payload=Plan,
    max_attempts=3,
    concurrency_per_key=2,
    rate_per_key=Rate(count=1, period=timedelta(seconds=20)),
    across_tenants=True,
)
def metered(plan: Plan, run: Run) -> Done:
    with running(run, limit_key=""):
        take_step(plan, run)
        return Done(writes=[effect(run)])


#: Fewer failures than a seed has jobs, and probes so near that a short outage has several.
_PAYMENTS = Breaker("payments", failure_threshold=3, window_seconds=30, probe_seconds=10)


@job_type("sim.dependent", payload=Plan, max_attempts=4, backoff_cap_seconds=20, depends_on=[_PAYMENTS])
def dependent(plan: Plan, run: Run) -> Done:
    """Calls a service that may be down or slow."""
    with running(run):
        take_step(plan, run)
        try:
            world().downstreams["payments"].call(run.tenant)
        except Exception as error:
            # It quotes what it was called with.
            error.args = (f"{error}{plan.about}",)
            raise
        return Done(writes=[effect(run)])


@job_type("sim.periodic", payload=Plan, max_attempts=4, backoff_cap_seconds=60, schedule="rate(1 minute)")
def periodic(plan: Plan, run: Run) -> Done:
    with running(run):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type("sim.unique", payload=Plan, max_attempts=3, backoff_cap_seconds=20, unique_seconds=3600, retention_days=0.002)
def unique(plan: Plan, run: Run) -> Done:
    with running(run):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type("sim.unstorable", payload=OddPlan, max_attempts=3, backoff_cap_seconds=20)
def unstorable(plan: OddPlan, run: Run) -> Any:
    """Returns a value at the edge of what a job may keep, or beyond it. `key` says which."""
    with running(run):
        return ODD_VALUES[plan.key].returned(run)


@job_type("sim.waits", payload=Plan, max_attempts=4, backoff_cap_seconds=30, max_hops=8)
def waits(plan: Plan, run: Run) -> Any:
    """Waits for `count` signals, one after another, each for `seconds` minutes at most."""
    with running(run):
        # A signal may come meanwhile.
        time.sleep(plan.fails)
        for number in range(plan.count):
            name = f"answer-{number}"
            if name not in run.signals and (run.waited_for != name or not run.timed_out):
                return WaitFor(name, timeout=timedelta(seconds=60 * plan.seconds + 1), checkpoint=number)
            if name not in run.signals:
                break
        return Done(result={"answers": sorted(run.signals)}, writes=[effect(run)])


@job_type("sim.asks", payload=Plan, max_attempts=3, backoff_cap_seconds=30, max_hops=8)
def asks(plan: Plan, run: Run) -> Done:
    """Lacks an input until a signal has brought one that is not wrong. It may ask twice."""
    with running(run):
        time.sleep(plan.fails)
        if run.signal("address") in {None, "wrong"}:
            raise MissingInput("address", after=timedelta(seconds=60 * plan.seconds + 1), most=2)
        return Done(writes=[effect(run)])


@job_type("sim.books", payload=Plan, max_attempts=4, backoff_cap_seconds=30)
def books(plan: Plan, run: Run) -> Done:
    """Says what would undo it. `count` is how often the undo fails."""
    with running(run):
        take_step(plan, run)
        undoing = Submission(
            type="sim.unbooks",
            payload={"fails": plan.count, "key": f"{run.tenant}#{run.job_id}", "padding": plan.padding},
            tags=["undo"],
        )
        return Done(writes=[effect(run)], undo=undoing)


@job_type("sim.rebooks", payload=Plan, max_attempts=4, backoff_cap_seconds=30)
def rebooks(plan: Plan, run: Run) -> Done:
    """Supersedes a booking."""
    with running(run):
        take_step(plan, run)
        return Done(writes=[effect(run)])


@job_type("sim.unbooks", payload=Plan, max_attempts=4, backoff_cap_seconds=30)
def unbooks(plan: Plan, run: Run) -> Done:
    """Says what would undo it, too, although an undo cannot be undone."""
    with running(run):
        take_step(plan, run)
        undoing = Submission(type="sim.unbooks", payload={"key": f"{run.tenant}#{run.job_id}"})
        return Done(writes=[effect(run)], undo=undoing)


@job_type("sim.poison", payload=Plan, max_attempts=3, backoff_cap_seconds=20)
def poison(plan: Plan, run: Run) -> Done:
    with running(run):
        time.sleep(plan.seconds)
        if run.attempt <= plan.fails:
            crash_process()
        return Done(writes=[effect(run)])
