"""Operators who redrive all dead jobs with probes, or one with another payload; and a check of the probes."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, Final

from tests.simulation.actors.callers import run_tool
from tests.simulation.actors.operator_objects import redriver
from tests.simulation.checks.violation import maps_of, require_in_task, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.application.control.redrive_probes import Cause, Probe, Probes, ProbeVerdict, cause_of
from tidemill.application.groups.group_order import in_group_order
from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.application.submission.validation import read_payload
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.system import clock

_CHECK: Final = "jobs follow a probe that succeeded"
#: Share of seeds with such an operator.
_SHARE: Final = 0.3
_TIMEOUT: Final = timedelta(seconds=30)
#: Such an operator edits the payload of one dead job first, at this chance.
_EDITING: Final = 0.5
#: Another edits each job that has died with a signal at this chance, up to so long after its death.
_EDITING_SIGNALLED: Final = 0.5
_EDITED_WITHIN_MS: Final = 5_000
#: Whose payloads they edit.
EDITABLE: Final = frozenset({"sim.effect", "sim.stepwise", "sim.reordered", "sim.waits", "sim.asks"})


def edited(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload with which no attempt fails."""
    return {**payload, "fails": 0}


class ProbingOperators:
    """The operator of one world. Their own chance leaves all else as it is in seeds without them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"probing operators {world.seed}")
        self._random_of_signalled = Random(f"edited jobs with signals {world.seed}")

    def plan(self, until_ms: int) -> None:
        known = not self._world.rollout.planned and Fault.CLOCK_FAR_OFF not in self._world.faults.rates
        if known:
            self._world.jobs.watchers.append(self._edit_signalled)
        if self._random.random() < _SHARE and known:
            at_ms = self._random.randint(self._world.scheduler.now_ms, until_ms)
            if self._random.random() < _EDITING:
                self._world.scheduler.at(at_ms, run_tool, self._world, "eve", self._edit)
            self._world.scheduler.at(at_ms, run_tool, self._world, "eve", self._redrive)

    def _edit_signalled(self, record: Record) -> None:
        after, random = record.after or {}, self._random_of_signalled
        dies = after.get("death") and not (record.before or {}).get("death")
        if dies and maps_of(after, "signals") and text_of(after, "type") in EDITABLE:
            job_id = record.keys["pk"]["S"].rpartition("#")[2]
            at_ms = self._world.scheduler.now_ms + random.randint(0, _EDITED_WITHIN_MS)
            if random.random() < _EDITING_SIGNALLED:
                act = partial(self._edit, wanted=replace(ANY_JOB, ids=(job_id,)))
                self._world.scheduler.at(at_ms, run_tool, self._world, "eve", act)

    def _edit(self, _process: Process, wanted: JobFilter = ANY_JOB) -> None:
        """Give a dead job a payload with which no attempt fails. Its model must accept it."""
        redrive = redriver()
        job = next((job for job in redrive.dead_jobs(wanted, began=clock.now()) if job.type in EDITABLE), None)
        if job is None:
            return
        payloads = composition.parts().payloads
        text, _ = read_payload(edited(json.loads(payloads.load(job))))
        composition.known_job_types().get(job.type).parse(text)
        self._world.log("eve", f"edits the payload of {job.id}")
        with suppress(TransactionConflictError):
            redrive.redrive_with(job, text, payloads, by="eve")

    def _redrive(self, _process: Process) -> None:
        store, began = composition.parts().store, clock.now()
        redrive = redriver()
        probes = Probes(store=store, clock=clock.now, pause=time.sleep, timeout=_TIMEOUT)
        succeeded: set[Cause] = set()

        def written(job: Job) -> bool:
            try:
                return redrive.redrive(job, by="eve")
            except TransactionConflictError:
                return False

        def ended(probe: Probe) -> None:
            """What the operator sees, in the table rather than by the engine."""
            self._world.log("eve", f"probes {probe.job.id}, which {probe.verdict}")
            item = self._world.jobs.items.get((f"{probe.job.tenant}#{probe.job.id}",))
            really = item is not None and item["state"]["S"] == State.SUCCEEDED
            claimed = probe.verdict is ProbeVerdict.SUCCEEDED
            self._require(really or not claimed, f"the probe {probe.job.id} has not succeeded", probe.job)
            if claimed:
                succeeded.add(cause_of(probe.job))

        for job in probes.choose(in_group_order(redrive.dead_jobs(ANY_JOB, began=began))):
            if written(job):
                probes.redriven(job)
        probes.wait(ended)
        for job in probes.approved(in_group_order(redrive.dead_jobs(ANY_JOB, began=began))):
            self._require(cause_of(job) in succeeded, f"no probe of the cause of {job.id} succeeded", job)
            written(job)

    def _require(self, holds: bool, what: str, job: Job) -> None:
        require_in_task(self._world.scheduler, holds, _CHECK, what, f"{job.tenant}#{job.id}")


__all__ = ["ProbingOperators"]
