"""Checks of the reports that publish, wake and reconcile print: they count what these functions wrote and sent."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from tests.simulation.checks.violation import number_of, require, state_of, waits_alone
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import RAISED
from tests.simulation.world.sqs_queue import Message
from tests.simulation.world.trace import Change
from tests.simulation.world.world import World
from tidemill.application.dispatch.owed import OwedResult
from tidemill.application.dispatch.publish import Published
from tidemill.application.operations.reconcile import Reconciled
from tidemill.application.waiting.release import Released
from tidemill.application.waiting.wake import Woken
from tidemill.domain.operations.repair_actions import RepairAction
from tidemill.domain.states import State
from tidemill.dynamodb.dispatch.owed_items import owed_key
from tidemill.names import JOB_KEY, OWED_PREFIX

#: After these, a function cannot know whether it or another one wrote the document.
_UNKNOWN: Final = (Fault.ANSWER_LOST, Fault.UNANSWERED)
#: An invocation may have begun before the faults stopped.
_INVOCATION_MS: Final = 2 * 60_000
_CHECK: Final = "reports count what was done"
_ADVANCED: Final = "advanced"
_WOKEN: Final = "woken"
_DELETED: Final = "deleted"
_RELEASED: Final = "released"
_RECONCILE: Final = "reconcile "
#: Gave up after many nudges.
_GIVEN_UP: Final = "given up"
#: Asked for another message, in either way.
_NUDGED: Final = "nudged"
_LEFT_BY_WAKE: Final = frozenset({State.SCHEDULED, State.PARKED})
_TURNS: Final = frozenset({(State.WAITING, State.QUEUED), (State.WAITING, State.SCHEDULED)})


class UseCaseReportChecks:
    """Watches the queues of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._quiet_from_ms = 0
        #: Messages that SQS took: (milliseconds, process).
        self._sent: list[tuple[int, str]] = []
        #: DLQ messages that SQS deleted: (milliseconds, process).
        self._deleted: list[tuple[int, str]] = []
        for queue in [*world.lanes.values(), *world.dead_letters.values()]:
            queue.send_watchers.append(partial(self._count, self._sent))
        for queue in world.dead_letters.values():
            queue.delete_watchers.append(partial(self._count, self._deleted))

    def quiet_begins(self) -> None:
        self._quiet_from_ms = self._world.scheduler.now_ms

    def no_record_blocks_its_shard(self) -> None:
        """While SQS and the store answer, publish returns no record to the stream. Raises `Violation`."""
        for at_ms, by, report in self._world.use_case_reports:
            if isinstance(report, Published) and at_ms > self._quiet_from_ms + _INVOCATION_MS:
                found = f"{by} returned {len(report.failed)} records: {report.failed_steps}"
                require(not report.failed, "no stream record blocks its shard", found, "*")

    def _count(self, counted: list[tuple[int, str]], _message: Message) -> None:
        if task := self._world.scheduler.current:
            counted.append((self._world.scheduler.now_ms, task.process.name))

    def at_end(self) -> None:
        """Compare all reports of each process with all that it did until the last one. Raises `Violation`."""
        self.what_is_handed_over_is_stored()
        if any(self._world.faults.counted[fault] for fault in _UNKNOWN):
            return
        reported: defaultdict[str, Counter[str]] = defaultdict(Counter)
        until_ms: dict[str, int] = {}
        shared: Counter[str] = Counter()
        #: Processes with an invocation that reported nothing, or not all.
        partial = set(self._world.scheduler.interrupted)
        # A second call that fails leaves the first one out of the report.
        partial |= set(self._world.sdk.gave_up)
        partial |= {who for _, who, what in self._world.trace.lines if what.startswith(RAISED)}
        # Such a write may be applied although its repeat was refused, as by a transaction under way.
        held_up = Counter(who for _, who, what in self._world.trace.lines if what.endswith(Fault.HELD_UP))
        for at_ms, by, report in self._world.use_case_reports:
            reported[by] += _counts(report)
            shared[by] += self._shared(at_ms, by, report)
            until_ms[by] = at_ms
            if _failed(report):
                # A failure ends the sweep of a queue, and the report leaves out what the sweep did before.
                partial.add(by)
        done = self._done(until_ms)
        woken_ms = [change.at_ms for change in self._world.trace.changes if _left_its_wait(change)]
        for by, counts in reported.items():
            for what in sorted({*counts, *done[by]} - {_ADVANCED}):
                # A wake that finds the job queued as it would have left it takes that for its own write.
                others = what in {_WOKEN, _RELEASED}
                most = bisect_right(woken_ms, until_ms[by]) if others else done[by][what]
                most += shared[by] if what == _NUDGED else 0
                # SQS answers that it deleted the message.
                lost = what == _DELETED and (self._world.faults.counted[Fault.DELETE_LOST] or self._deleted_too_late)
                more = counts[what] > most and not lost
                less = counts[what] < done[by][what] - held_up[by] and by not in partial
                found = f"{by} reported {what} {counts[what]} times, and did it {done[by][what]} times"
                require(not more and not less, _CHECK, found, "*")
        # A transaction applies apart from its caller. Workers advance groups, too, and report that elsewhere.
        advanced = sum(counts[_ADVANCED] for counts in reported.values())
        turned = [change for change in self._world.trace.changes if _moved(change) in _TURNS]
        what = f"{advanced} jobs were reported as advanced, and {len(turned)} were"
        require(advanced <= len(turned), _CHECK, what, "*")

    @property
    def _deleted_too_late(self) -> bool:
        return any(queue.deleted_too_late for queue in self._world.dead_letters.values())

    def _shared(self, at_ms: int, by: str, report: Any) -> int:
        """The number of jobs in the report that only another process has sent again.

        If both did so in one millisecond of their clocks, the later one takes the write of the other for its own.
        """
        if not isinstance(report, OwedResult) or not report.resent:
            return 0
        writers: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        for change in self._world.trace.changes:
            if 0 <= at_ms - change.at_ms <= _INVOCATION_MS and _moved(change) and _nudged_at(change):
                writers[change.key, number_of(change.after, "generation")].add(change.by)
        wrote = [writers[f"{job.tenant}#{job.id}", job.generation] for job in report.resent]
        return sum(bool(found) and by not in found for found in wrote)

    def what_is_handed_over_is_stored(self) -> None:
        """A failed step of publish is stored as owed work by the same function, or the stream keeps its record."""
        stored = defaultdict(list)
        for change in self._world.trace.changes:
            if change.key.startswith(OWED_PREFIX):
                stored[change.by, change.key].append(change.at_ms)
        for at_ms, by, report in self._world.use_case_reports:
            for step in report.failed_steps if isinstance(report, Published) else ():
                owed = owed_key(step.work)[JOB_KEY]["S"]
                there = any(written_ms <= at_ms for written_ms in stored[by, owed])
                kept = step.sequence in report.failed
                what = f"{by}, {step.step}: handed over {step.handed_over}, kept {kept}, stored {there}"
                require(there if step.handed_over else kept, "what is handed over is stored", what, owed)

    def _done(self, until_ms: Mapping[str, int]) -> defaultdict[str, Counter[str]]:
        done: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for at_ms, by in self._sent:
            done[by]["sent"] += at_ms <= until_ms.get(by, 0)
        for at_ms, by in self._deleted:
            done[by][_DELETED] += at_ms <= until_ms.get(by, 0)
        for change in self._world.trace.changes:
            moved = _moved(change)
            if moved and change.at_ms <= until_ms.get(change.by, 0):
                nudged = number_of(change.after, "nudges") > number_of(change.before, "nudges")
                resent = moved[0] is moved[1] and _nudged_at(change)
                given_up = nudged and moved[1] is State.DEAD
                done[change.by][_GIVEN_UP] += given_up
                done[change.by][_NUDGED] += (nudged or resent) and not given_up
                # A tenant who signals reports nothing, and publish nothing of a flow that it asks to look.
                signalled = any(
                    (change.before or {}).get(name) != (change.after or {}).get(name) for name in ("signals", "looks")
                )
                # Reconcile ends waits, and wake alone releases lines.
                ended = waits_alone(change.before) or change.by.startswith(_RECONCILE)
                alone = ended and moved == (State.PARKED, State.QUEUED) and not signalled
                released = moved == (State.PARKED, State.QUEUED) and not ended
                done[change.by][_RELEASED] += released and not nudged
                done[change.by][_WOKEN] += (alone or moved == (State.SCHEDULED, State.QUEUED)) and not nudged
        return done


def _moved(change: Change) -> tuple[State | None, State | None] | None:
    """The states of one job before and after; None if the change is another."""
    before, after = change.before, change.after
    same = before and after and "state" in after and before["created_at"] == after["created_at"]
    return (state_of(before), state_of(after)) if same else None


def _left_its_wait(change: Change) -> bool:
    """Whether the job was queued from the schedule or from its line."""
    moved = _moved(change)
    return moved is not None and moved[0] in _LEFT_BY_WAKE and moved[1] is State.QUEUED


def _nudged_at(change: Change) -> bool:
    """Whether the write asked for another message."""
    before, after = change.before or {}, change.after or {}
    return "nudged_at" in after and after["nudged_at"] != before.get("nudged_at")


def _failed(report: Any) -> bool:
    return isinstance(report, Reconciled) and report.count(RepairAction.FAILED) > 0


def _counts(report: Any) -> Counter[str]:
    by_type: dict[type, Callable[[Any], dict[str, int]]] = {
        Published: lambda published: {"sent": len(published.sent), _ADVANCED: len(published.advanced)},
        Woken: lambda woken: {_WOKEN: sum(woken.jobs.values())},
        Released: lambda released: {_RELEASED: len(released.jobs)},
        OwedResult: lambda result: {_NUDGED: len(result.resent), _ADVANCED: len(result.advanced)},
        Reconciled: lambda reconciled: {
            _NUDGED: reconciled.count(RepairAction.NUDGED)
            + sum(swept.nudged for swept in reconciled.dead_letters.values()),
            _GIVEN_UP: reconciled.count(RepairAction.UNDELIVERABLE),
            _DELETED: sum(swept.outdated + swept.nudged for swept in reconciled.dead_letters.values()),
            _WOKEN: reconciled.count(RepairAction.WOKEN),
            _ADVANCED: reconciled.count(RepairAction.ADVANCED),
        },
    }
    return Counter(by_type[type(report)](report))


__all__ = ["UseCaseReportChecks"]
