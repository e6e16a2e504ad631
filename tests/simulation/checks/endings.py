"""Checks of how a run ends, against what its handler did and what was asked of the job."""

import json
from typing import Final

from tests.simulation.checks.document_changes import DocumentChangeChecks
from tests.simulation.checks.joint_calls import BATCHED
from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    errors_of,
    holds_by_cause,
    number_of,
    require,
    run_ended,
    state_of,
    text_of,
)
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.application.attempt.attempt_holds import MOST_HOLDS_OF_A_VERSION
from tidemill.domain.states import State
from tidemill.names import BATCH_TYPE, EVENT_TYPE, FLOW_TYPE

#: Types whose handlers end a job in this way.
_GIVING_UP: Final = frozenset({"sim.give-up", BATCH_TYPE, FLOW_TYPE})
_PERMANENT: Final = frozenset({"sim.permanent", "sim.repaired", "sim.unstorable", "sim.reordered", *BATCHED})
#: The times after which no worker may claim a job to run it.
_NO_RUN_AFTER: Final = {
    "deadline": "no job runs whose deadline has passed",
    "useful_until": "no job runs that is too old",
}


class EndingChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World, documents: DocumentChangeChecks) -> None:
        self._world = world
        self._documents = documents
        watch_jobs(world, changed=[self._run_ended])

    def _run_ended(self, key: str, before: Item, after: Item) -> None:
        if run_ended(before, after):
            self.endings_have_a_cause(key, before, after)
            self.results_are_those_of_the_handler(key, before, after)

    def endings_have_a_cause(self, key: str, before: Item, after: Item) -> None:
        kind, state, death = text_of(after, "type"), state_of(after), text_of(after, "death")
        owner = text_of(before, "owner")
        # A handler that begins late reads the token of the worker that has taken its job over.
        by = self._documents.claimed_by.get(owner)
        # These handlers are those of the engine, which record no run.
        ran = kind in {EVENT_TYPE, BATCH_TYPE, FLOW_TYPE} or any(
            (run.owner, run.by, run.key) == (owner, by, key) for run in self._world.runs
        )
        caused = True
        if state is State.SUCCEEDED:
            caused = ran
        elif state is State.CANCELLED:
            caused = "cancel_requested_at" in before or (ran and kind in _GIVING_UP)
        elif state is State.EXPIRED:
            caused = not ran and "useful_until" in before and number_of(before, "useful_until") <= self._latest_ms
        elif death == "gave up":
            caused = ran and kind in _GIVING_UP
        elif death == "permanent error":
            waited = kind != "sim.lengthened" or holds_by_cause(before).get("version", 0) >= MOST_HOLDS_OF_A_VERSION
            require(waited, "a job waits for the version that added a step", f"{after.get('errors')}", key)
            caused = (ran and kind in _PERMANENT) or (not ran and "supersedes" in before) or self._world.rollout.planned
        elif death == "result cannot be stored":
            caused = ran and (kind == "sim.unstorable" or "payload_at" in after or "padding" in after["payload"]["S"])
        elif death == "missing input":
            caused = ran and kind == "sim.asks"
        elif death == "deadline passed":
            caused = "deadline" in after and number_of(after, "deadline") <= self._latest_ms
        for limit, check in _NO_RUN_AFTER.items():
            late = limit in before and number_of(before, "claimed_at") > number_of(before, limit)
            require(not (ran and late), check, f"claimed too late, {state} {death}", key)
        require(caused, "each ending has a cause", f"{state} {death}, ran: {ran}", key)

    def results_are_those_of_the_handler(self, key: str, before: Item, after: Item) -> None:
        check, kind, attempt = "a document keeps what its handler said", text_of(after, "type"), before["attempt"]["N"]
        if state_of(after) is State.SUCCEEDED:
            result = json.loads(text_of(after, "result") or "null")
            fits = kind != "sim.effect" or result == {"attempt": int(attempt)}
            if kind in {"sim.plain", "sim.grouped"} and "payload" in after:
                plan = json.loads(after["payload"]["S"])
                secret = {"canary": plan["canary"]} if "canary" in plan and kind == "sim.plain" else {}
                fits = result == {"n": plan.get("count", 0), "padding": plan.get("padding", "")} | secret
            require(fits, check, f"the result is {str(result)[:99]}", key)
        errors = errors_of(after)
        if errors and errors != errors_of(before):
            last = errors[-1]
            said = text_of(last, "message")
            fits = text_of(last, "error_class") != "BrokenError" or said.partition(" of ")[0] == f"attempt {attempt}"
            fits = fits and (
                kind != "sim.permanent" or text_of(last, "error_class") != "PermanentJobError" or said == "never"
            )
            require(fits, check, f"the error is {said!r}", key)

    @property
    def _latest_ms(self) -> int:
        """The present of a worker whose clock is fast."""
        return self._world.scheduler.now_ms + self._skew_ms

    @property
    def _skew_ms(self) -> int:
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS


__all__ = ["EndingChecks"]
