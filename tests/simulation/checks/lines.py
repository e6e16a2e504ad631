"""Each claim and each end of a run has its log line before the next call of its thread, which may be its last call.

The line of an end carries its metrics. Transactions and statements are not checked: the simulated DynamoDB applies
them by itself.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from tests.simulation.checks.violation import Violation, number_of, require_in_task, run_ended, text_of
from tests.simulation.world.cloudwatch import Line
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.task_scheduler import Task
from tests.simulation.world.world import World
from tidemill.application.attempt.attempt_report import Ending

_CHECK: Final = "each claim and settle has its line at once"
#: How the names of workers begin.
_WORKER: Final = "work-"
_CLAIMED, _ENDED = "claimed", "ended"
#: Lines of messages whose run was not written as ended.
_NO_END: Final = frozenset(
    {Ending.FENCED, Ending.REFUSED, Ending.REDRIVEN, Ending.NOT_STARTED, Ending.UNAVAILABLE, Ending.MALFORMED}
)
_ENDS: Final = frozenset(Ending) - _NO_END

#: Kind of line, job id and generation.
_Wanted = tuple[str, str, int]


class LineChecks:
    """Watches the writes, the calls and the lines of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By task, the lines of writes by its present call, and of those by calls that have been answered.
        self._written: defaultdict[Task, set[_Wanted]] = defaultdict(set)
        self._owed: defaultdict[Task, set[_Wanted]] = defaultdict(set)
        #: By process, its tasks that have had a line of either kind.
        self._tasks: defaultdict[str, set[Task]] = defaultdict(set)
        #: The runs whose claim has its line, with the name of their process.
        self._claimed: set[tuple[str, _Wanted]] = set()
        world.jobs.watchers.append(self._changed)
        world.sdk.begin_watchers.append(self._call_begins)
        world.sdk.answer_watchers.append(self._answered)
        world.cloudwatch.line_watchers.append(self._line_written)

    def at_end(self) -> None:
        """Raises `Violation`."""
        for task, owed in self._owed.items():
            for kind, job_id, generation in sorted(owed):
                raise Violation(_CHECK, f"{task.process.name} wrote no line {kind} of generation {generation}", job_id)

    def _changed(self, record: Record) -> None:
        task, before, after = self._world.scheduler.current, record.before, record.after
        if after is None or "state" not in after:
            return
        job_id = record.keys["pk"]["S"].rpartition("#")[2]
        generation = number_of(before or after, "generation")
        claim, end = (_CLAIMED, job_id, generation), (_ENDED, job_id, generation)
        if before and text_of(before, "owner") != text_of(after, "owner"):
            # A claim whose answer is lost, and an end of an earlier run, look refused from now on. So does an end
            # whose worker cannot read the document any more.
            over = run_ended(before, after) or number_of(after, "schema") > number_of(before, "schema")
            self._forget(lambda wanted: wanted == claim or (wanted[:2] == (_ENDED, job_id) and over))
        if task is None or not task.process.name.startswith(_WORKER):
            return
        if before is None:
            return
        self._tasks[task.process.name].add(task)
        if "owner" in after and text_of(after, "owner") != text_of(before, "owner"):
            # A later job of the key may have the same generation.
            self._claimed.discard((task.process.name, claim))
            self._written[task].add(claim)
        elif run_ended(before, after) and (task.process.name, claim) in self._claimed:
            self._written[task].add(end)

    def _forget(self, pointless: Callable[[_Wanted], bool]) -> None:
        """Forget the writes without an answer. A claim that is taken back is one of them, too."""
        for task, written in self._written.items():
            self._written[task] = {wanted for wanted in written if not pointless(wanted)}

    def _answered(self) -> None:
        task = self._world.scheduler.current
        if task and (written := self._written.pop(task, None)):
            self._owed[task] |= written

    def _call_begins(self) -> None:
        task = self._world.scheduler.current
        if task is None:
            return
        # An earlier call without an answer wrote it: the process does not know of that write.
        self._written.pop(task, None)
        for kind, job_id, generation in sorted(self._owed.get(task, ())):
            what = f"{task.process.name} made a call before its line {kind} of generation {generation}"
            require_in_task(self._world.scheduler, holds=False, check=_CHECK, what=what, about=job_id)

    def _line_written(self, line: Line) -> None:
        message, job_id, generation = line.message, line.fields.get("job_id"), line.fields.get("generation")
        if job_id is None or generation is None or not line.by.startswith(_WORKER):
            return
        if message in _ENDS:
            self._require_metrics(line)
        # A worker that has no time left says so, and does not wait for the answer of its last write.
        kind = _ENDED if message in {*_ENDS, Ending.UNAVAILABLE} else message
        wanted = (kind, job_id, generation)
        if kind == _CLAIMED:
            self._claimed.add((line.by, wanted))
        for task in self._tasks[line.by]:
            for lines in (self._written, self._owed):
                if task in lines:
                    lines[task].discard(wanted)

    def _require_metrics(self, line: Line) -> None:
        what = f"{line.by}: the line {line.message} has no metrics"
        require_in_task(self._world.scheduler, bool(line.metrics), _CHECK, what, str(line.fields["job_id"]))
