"""Checks of the reports that publish, wake and reconcile print: they count what these functions wrote and sent."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final

from tests.simulation.checks.violation import number_of, require, state_of
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import RAISED
from tests.simulation.world.sqs_queue import Message
from tests.simulation.world.world import World
from tidemill.application.publish import Published
from tidemill.application.reconcile import Reconciled, RepairAction
from tidemill.application.wake import Woken
from tidemill.domain.states import State

#: After these, a function cannot know whether it or another one wrote the document.
_UNKNOWN: Final = (Fault.ANSWER_LOST, Fault.UNANSWERED)
_CHECK: Final = "reports count what was done"
_ADVANCED: Final = "advanced"
_TURNED: Final = frozenset({State.QUEUED, State.SCHEDULED})


class UseCaseReportChecks:
    """Watches the queues of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By process, the number of messages that SQS took from it.
        self._sent: Counter[str] = Counter()
        for queue in [*world.lanes.values(), *world.dead_letters.values()]:
            queue.send_watchers.append(self._count)

    def _count(self, _message: Message) -> None:
        if task := self._world.scheduler.current:
            self._sent[task.process.name] += 1

    def at_end(self) -> None:
        """Compare all reports of each process with all that it did. Raises `Violation`."""
        reported: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for by, report in self._world.use_case_reports:
            reported[by] += _counts(report)
        done = self._done()
        partial = set(self._world.scheduler.interrupted) | {
            who for _, who, what in self._world.trace.lines if what.startswith(RAISED)
        }
        if any(self._world.faults.counted[fault] for fault in _UNKNOWN):
            return
        # A failure ends the sweep of a queue, and the report leaves out what the sweep did before.
        partial |= {by for by, report in self._world.use_case_reports if _failed(report)}
        for by, counts in reported.items():
            for what in sorted({*counts, *done[by]} - {_ADVANCED}):
                more = counts[what] > done[by][what]
                less = counts[what] < done[by][what] and by not in partial
                found = f"{by} reported {what} {counts[what]} times, and did it {done[by][what]} times"
                require(not more and not less, _CHECK, found, "*")
        # A transaction applies apart from its caller. Workers advance groups, too, and report that elsewhere.
        advanced = sum(counts[_ADVANCED] for counts in reported.values())
        most = sum(counts[_ADVANCED] for counts in done.values())
        require(advanced <= most, _CHECK, f"{advanced} jobs were reported as advanced, and {most} were", "*")

    def _done(self) -> defaultdict[str, Counter[str]]:
        done: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for by, count in self._sent.items():
            done[by]["sent"] = count
        for change in self._world.trace.changes:
            before, after = change.before, change.after
            if before and after and "state" in after and before["created_at"] == after["created_at"]:
                nudged = number_of(after, "nudges") > number_of(before, "nudges")
                done[change.by]["nudged"] += nudged
                moved = (state_of(before), state_of(after))
                done[change.by][_ADVANCED] += moved[0] is State.WAITING and moved[1] in _TURNED
                done[change.by]["woken"] += moved == (State.SCHEDULED, State.QUEUED) and not nudged
        return done


def _failed(report: Any) -> bool:
    return isinstance(report, Reconciled) and report.count(RepairAction.FAILED) > 0


def _counts(report: Any) -> Counter[str]:
    by_type: dict[type, Callable[[Any], dict[str, int]]] = {
        Published: lambda published: {"sent": len(published.sent), _ADVANCED: len(published.advanced)},
        Woken: lambda woken: {"woken": sum(woken.jobs.values())},
        Reconciled: lambda reconciled: {
            "nudged": reconciled.count(RepairAction.NUDGED)
            + reconciled.count(RepairAction.UNDELIVERABLE)
            + sum(swept.nudged for swept in reconciled.dead_letters.values()),
            "woken": reconciled.count(RepairAction.WOKEN),
            _ADVANCED: reconciled.count(RepairAction.ADVANCED),
        },
    }
    return Counter(by_type[type(report)](report))


__all__ = ["UseCaseReportChecks"]
