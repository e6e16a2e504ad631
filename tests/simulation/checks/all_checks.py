"""All checks of one world, and the time bound within which every job must have ended."""

from typing import Final

from tests.simulation.checks.adaptive_limits import AdaptiveLimitChecks
from tests.simulation.checks.at_rest import AtRestChecks
from tests.simulation.checks.attempts import AttemptChecks
from tests.simulation.checks.batches import BatchChecks
from tests.simulation.checks.breaker_ages import BreakerAgeChecks
from tests.simulation.checks.breakers import BreakerChecks
from tests.simulation.checks.canaries import CanaryChecks
from tests.simulation.checks.caps import CapChecks
from tests.simulation.checks.crashes import CrashChecks
from tests.simulation.checks.debounce import BurstChecks
from tests.simulation.checks.dispatches import DispatchChecks
from tests.simulation.checks.document_changes import DocumentChangeChecks
from tests.simulation.checks.document_fields import DocumentFieldChecks
from tests.simulation.checks.endings import EndingChecks
from tests.simulation.checks.events import EventChecks
from tests.simulation.checks.explanations import ExplanationChecks
from tests.simulation.checks.floods import FloodChecks
from tests.simulation.checks.flows import FlowChecks
from tests.simulation.checks.forced_breakers import ForcedBreakerChecks
from tests.simulation.checks.governor import GovernorChecks
from tests.simulation.checks.group_items import GroupItemChecks
from tests.simulation.checks.handler_fields import HandlerFieldChecks
from tests.simulation.checks.histories import HistoryChecks
from tests.simulation.checks.hold_waits import HoldWaitChecks
from tests.simulation.checks.holds import HoldChecks
from tests.simulation.checks.invocations import InvocationChecks
from tests.simulation.checks.job_files import JobFileChecks
from tests.simulation.checks.joint_calls import JointCallChecks
from tests.simulation.checks.limit_items import LimitItemChecks
from tests.simulation.checks.limit_room import LimitRoomChecks
from tests.simulation.checks.limits import LimitChecks
from tests.simulation.checks.lines import LineChecks
from tests.simulation.checks.messages import MessageChecks
from tests.simulation.checks.odd_values import OddValueChecks
from tests.simulation.checks.overrides import OverrideChecks
from tests.simulation.checks.owed_items import OwedItemChecks
from tests.simulation.checks.parked_jobs import ParkedJobChecks
from tests.simulation.checks.passes import PassChecks
from tests.simulation.checks.pauses import PauseChecks
from tests.simulation.checks.payloads import PayloadChecks
from tests.simulation.checks.read_documents import ReadDocumentChecks
from tests.simulation.checks.repairs import RepairChecks
from tests.simulation.checks.replays import ReplayChecks
from tests.simulation.checks.schedules import ScheduleChecks
from tests.simulation.checks.signals import SignalChecks
from tests.simulation.checks.slowdowns import SlowdownChecks
from tests.simulation.checks.steps import StepChecks
from tests.simulation.checks.stray_threads import StrayThreadChecks
from tests.simulation.checks.transitions import TransitionChecks
from tests.simulation.checks.undos import UndoChecks
from tests.simulation.checks.unfinished_items import UnfinishedItems
from tests.simulation.checks.use_case_reports import UseCaseReportChecks
from tests.simulation.checks.version_compatibility import VersionCompatibilityChecks
from tests.simulation.checks.violation import Violation
from tests.simulation.checks.waits import WaitChecks
from tests.simulation.checks.wake_reports import WakeReportChecks
from tests.simulation.world.faults import LOSSES
from tests.simulation.world.world import World

_DAY_SECONDS: Final = 86_400
#: Largest figures of a workload: follow-up jobs, attempts of a job until it is redriven, and the longest waits.
_MOST_FOLLOWING: Final = 3
_MOST_ATTEMPTS: Final = 4
_LONGEST_BACKOFF_SECONDS: Final = 2_000
_FARTHEST_RUN_AT_SECONDS: Final = 6 * 3600
#: Longest time for which a job of another version's type or payload is held.
_LONGEST_HELD_SECONDS: Final = 4 * 3600


class Checks:
    """Create it before the world runs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._unfinished = UnfinishedItems(world)
        self._documents = DocumentChangeChecks(world)
        self._fields = DocumentFieldChecks(world)
        self._runs = AttemptChecks(world, CrashChecks(world))
        self._history = AtRestChecks(world, self._documents)
        self._limits = LimitChecks(world, self._documents)
        self._lines = LineChecks(world)
        self._strays = StrayThreadChecks(world, self._documents)
        self._caps = CapChecks(world)
        LimitItemChecks(world, self._caps)
        AdaptiveLimitChecks(world)
        for watching in (TransitionChecks, LimitRoomChecks, OwedItemChecks):
            watching(world)
        self._groups = GroupItemChecks(world)
        MessageChecks(world)
        CanaryChecks(world)
        ReadDocumentChecks(world)
        DispatchChecks(world)
        WaitChecks(world)
        OddValueChecks(world)
        HoldChecks(world)
        HoldWaitChecks(world)
        HistoryChecks(world)
        EndingChecks(world, self._documents)
        HandlerFieldChecks(world)
        self.passes, self._invocations = PassChecks(world), InvocationChecks(world)
        self._reports = UseCaseReportChecks(world)
        self._wake_reports = WakeReportChecks(world)
        self._waiting = ParkedJobChecks(world)
        self._pauses = PauseChecks(world)
        self.schedules = ScheduleChecks(world)
        self._overrides = OverrideChecks(world)
        self._forced_breakers = ForcedBreakerChecks(world)
        self._breakers = BreakerChecks(world, self._forced_breakers)
        self._breaker_ages = BreakerAgeChecks(world, self._forced_breakers)
        self.governor = GovernorChecks(world)
        self.floods = FloodChecks(world, self.governor)
        self._slowdowns = SlowdownChecks(world, self.governor, self.floods)
        self._job_files = JobFileChecks(world)
        self.payloads = PayloadChecks(world)
        self.signals = SignalChecks(world)
        self.undos = UndoChecks(world)
        self._steps, self._joint_calls = StepChecks(world), JointCallChecks(world)
        self.events = EventChecks(world)
        self.replays = ReplayChecks(world)
        self.batches, self.bursts = BatchChecks(world), BurstChecks(world)
        self.flows = FlowChecks(world)
        self._explanations, self._repairs = ExplanationChecks(world), RepairChecks(world)
        self.versions = VersionCompatibilityChecks(world)

    def look(self) -> bool:
        """Call it between the steps of the world. False, so that the world runs on."""
        self._explanations.look()
        self._repairs.look()
        return False

    def at_rest(self) -> bool:
        """Whether every job is terminal, every lane is empty, the stream is read and no work is owed."""
        if self._unfinished.keys or self._world.stream.behind:
            return False
        return not any(queue.messages for queue in self._world.lanes.values())

    def bound_ms(self) -> int:
        """Time after the last fault within which every job must have ended: see "The bound" in docs/internals/proof.md.

        A lost message is found by the first or second daily reconcile after the limit; without losses no job waits
        for reconcile. A message of a dead worker returns after the visibility timeout. A job may have to wait for the
        others of its group, each with two full sets of attempts.
        """
        stage = self._world.deployment.stage
        visibility_seconds = max(lane.visibility_timeout_seconds for lane in stage.lanes)
        attempts_seconds = _MOST_ATTEMPTS * (visibility_seconds + _LONGEST_BACKOFF_SECONDS)
        attempts_seconds += _LONGEST_HELD_SECONDS if self._world.rollout.planned else 0
        jobs = len([item for item in self._world.jobs.items.values() if "state" in item])
        lost = any(self._world.faults.counted[fault] for fault in LOSSES)
        lost_seconds = 2 * _DAY_SECONDS + stage.reconcile_limit_seconds if lost else 0
        return 1000 * (lost_seconds + _FARTHEST_RUN_AT_SECONDS + 2 * (jobs + _MOST_FOLLOWING) * attempts_seconds)

    def quiet_begins(self) -> None:
        """No new fault happens from now on."""
        self.governor.quiet_begins()
        self.passes.quiet_begins()
        self._reports.quiet_begins()
        self._wake_reports.quiet_begins()

    def at_end(self) -> None:
        """Raises `Violation`."""
        self._history.at_end()
        self._fields.at_end()
        self._runs.at_end()
        self._limits.at_end()
        self._caps.at_end()
        self._groups.at_end()
        self._lines.at_end()
        self._strays.at_end()
        self.passes.at_end()
        self._invocations.at_end()
        self._reports.at_end()
        self._wake_reports.at_end()
        self._waiting.at_end()
        self._pauses.at_end()
        self._overrides.at_end()
        self._breakers.at_end()
        self._forced_breakers.at_end()
        self._breaker_ages.at_end()
        self._job_files.at_end()
        self.signals.at_end()
        self.undos.at_end()
        self.floods.at_end()
        self.governor.at_end()
        self._slowdowns.at_end()
        self._steps.at_end()
        self._joint_calls.at_end()
        self.events.at_end()
        self.batches.at_end()
        self.bursts.at_end()
        self.flows.at_end()
        self._reports.no_record_blocks_its_shard()
        self.versions.at_end()


__all__ = ["Checks", "Violation"]
