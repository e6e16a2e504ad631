"""What an attempt gets from its worker: the dependencies that all attempts share, and the hooks of its batch."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from tidemill.application.admission.foreground import Foreground, Governor, strain_level
from tidemill.application.attempt.attempt_report import RunObserver, Unobserved
from tidemill.application.attempt.handler_context import HandlerContext, HandlerScope, SettleScope
from tidemill.application.breakers.breakers import Breakers
from tidemill.application.configuration import CurrentConfiguration, nothing_set
from tidemill.application.job_types import JobTypes
from tidemill.application.ports import AttemptStore, Clock, Draw, Limits, NewToken, Payloads, SettleJointly
from tidemill.application.submission.submit import Submit
from tidemill.domain.attempt.outcomes import Held
from tidemill.domain.job import Job
from tidemill.domain.waiting.holds import HoldCause

if TYPE_CHECKING:
    from tidemill.application.attempt.gate import GatesOf
    from tidemill.application.attempt.grouped_commit import AttemptWrites, GroupedCommit
    from tidemill.application.corrections.superseding import Superseder
    from tidemill.application.waiting.release import Releaser

#: Waits until no other run is at work in this process, until the given deadline of the attempt at the latest. Returns
#: the new deadline of the attempt, or None if time does not suffice. Both are times of `AttemptContext.steady`.
WaitUntilAlone = Callable[[datetime], datetime | None]
#: Whether another handler still runs in this process although its attempt has ended.
StrayBeside = Callable[[], bool]


def no_parents(_job: Job) -> Mapping[str, Any]:
    """For a job outside of flows, and in a test of a handler."""
    return {}


class AttemptContext(Struct, frozen=True, kw_only=True):
    """The dependencies that all attempts of a worker share."""

    store: AttemptStore
    payloads: Payloads
    limits: Limits
    job_types: JobTypes
    submit: Submit
    #: The wall clock, for times that documents keep.
    clock: Clock
    new_token: NewToken
    draw: Draw
    pause: Callable[[float], None]
    #: The gates that a run passes before its handler, each of a feature.
    gates: "GatesOf"
    configuration: CurrentConfiguration = nothing_set
    #: A clock for time limits within this process, which no step of the wall clock moves. None: as `clock`, in a test.
    steady_clock: Clock | None = None
    #: None: calls of downstreams are not counted, as in a test of a handler.
    breakers: Breakers | None = None
    #: Called for a job that supersedes another one. None: no job does, as in a test of a handler.
    superseder: "Callable[[], Superseder] | None" = None
    #: None: nothing governs the strain, and only an operator sets its level.
    governor: Governor | None = None
    #: Gives `Run.parents` for a node of a flow.
    parents_of: Callable[[Job], Mapping[str, Any]] = no_parents
    #: None: the runs of this worker are not the foreground.
    foreground: Foreground | None = None
    #: None: the jobs of a batch handler settle one by one, as in a test of a handler.
    settle_jointly: SettleJointly | None = None
    #: None: each claim and each settle is a call of its own.
    grouped: "GroupedCommit | None" = None

    def steady(self) -> datetime:
        """The present, for the deadline of an attempt. It compares with no time of a document."""
        return (self.steady_clock or self.clock)()

    @property
    def writes(self) -> "AttemptWrites":
        return self.grouped or self.store

    @property
    def releaser(self) -> "Releaser":
        from tidemill.application.waiting.release import Releaser  # noqa: PLC0415 - most jobs wait in no line

        return Releaser(
            store=self.store,
            limits=self.limits,
            clock=self.clock,
            configuration=self.configuration,
            breakers=self.breakers,
        )

    def flags(self) -> Mapping[str, Any]:
        """Return what `Run.flags` shows to the handler."""
        return self.configuration().flags(self.clock())

    def strain_level(self) -> int:
        """Return what `Run.strained` shows to the handler."""
        return strain_level(self.configuration, self.governor, self.clock)

    def held_below(self, ceiling_seconds: float, cause: HoldCause) -> Held:
        """Held for a random time of 1 s to 1 s more than the ceiling."""
        return Held(until=self.clock() + timedelta(seconds=1 + ceiling_seconds * self.draw()), cause=cause)


class AttemptHooks(Struct, frozen=True, kw_only=True):
    """What an attempt asks of the batch around it, and reports to it. By default it is alone in its process."""

    wait_until_alone: WaitUntilAlone = lambda deadline: deadline
    stray_beside: StrayBeside = lambda: False
    #: Called when the job type brings the deadline of the attempt forward.
    deadline_moved: Callable[[], None] = lambda: None
    handler_scope: HandlerScope = lambda job: nullcontext(HandlerContext(fields={}, trace=job.trace))
    settle_scope: SettleScope = lambda _job: nullcontext()
    observer: RunObserver = field(default_factory=Unobserved)
    #: Names the invocation in the history of the job.
    worker: str = ""
