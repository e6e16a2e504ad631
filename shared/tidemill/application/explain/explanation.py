"""The terms of `explain`: what was read about a job, the reason why it is where it is, and the answer. Pure."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from tidemill.application.dispatch.owed import Owed
from tidemill.domain.breakers.breaker import Breaker
from tidemill.domain.job import Job
from tidemill.domain.limits.limit_state import LimitState
from tidemill.domain.operations.overrides import Override
from tidemill.domain.operations.setting import Setting
from tidemill.domain.waiting.pauses import Pause


class Reason(StrEnum):
    """Why a job is where it is."""

    ENDED = "it has ended"
    DEAD = "it is dead"
    RUNNING = "a worker runs it"
    LEASE_OVER = "its worker is presumed dead"
    #: The time of the submission has not come.
    DELAYED = "its time has not come"
    #: The time that a snooze or a continuation set has not come.
    HANDLER_DELAY = "its handler asked for a later time"
    #: By a process whose clock is ahead.
    REDRIVEN = "it was redriven just now"
    BACKOFF = "it waits for its next attempt"
    RELEASED = "its last run gave the claim back"
    #: The hold causes, except the limit.
    HELD = "it was held back"
    #: The limit gave it a time or a slot of its own.
    TURN = "its turn at its limit comes"
    AWAITED = "it waits for a signal"
    PAUSED = "an operator has paused it"
    #: Wake gives it a time.
    LOADED = "its type is loaded again"
    UNLOADED = "a broken job file keeps its type from being loaded"
    #: Wake gives it a time.
    RESUMED = "its pause has ended"
    BREAKER_OPEN = "the breaker of its downstream is open"
    BREAKER_CLOSED = "the breaker of its downstream has closed"
    #: To probe the downstream, or as one of those that start after it closed.
    BREAKER_RELEASED = "its breaker gave it a time"
    WAKE_LATE = "its time has come, and wake has not queued it"
    BEHIND_HEAD = "another job of its group is before it"
    BLOCKED = "a dead job blocks its group"
    GROUP_TURN = "its group is about to move on"
    NO_SLOT = "all slots of its limit are in use"
    NO_RATE = "the rate of its limit lets none start"
    LINE_MOVES = "its limit has room, and its line is about to move"
    OWED = "publish could not send its message"
    PUBLISH_STOPPED = "publish is not called"
    LANE_STOPPED = "the workers of its lane are not called"
    ON_LANE = "it waits for a worker of its lane"
    NO_MESSAGE = "its lane has no message"
    #: The queue could not be read.
    READY = "it is ready"


class GroupHead(Struct, frozen=True, kw_only=True):
    """The job whose turn it is in the group; None if that place is empty."""

    job_id: str | None
    job: Job | None


class LaneDepth(Struct, frozen=True, kw_only=True):
    """The approximate numbers of messages of a lane."""

    waiting: int
    delayed: int
    in_flight: int

    @property
    def empty(self) -> bool:
        return not self.waiting + self.delayed + self.in_flight


class Facts(Struct, frozen=True, kw_only=True):
    """What was read, at `now`. None for what does not concern the job, or could not be read."""

    job: Job
    now: datetime
    #: The head of the group of a waiting job.
    head: GroupHead | None = None
    #: The pause in force that the line of a paused job waits for.
    pause: Pause | None = None
    #: The overrides of its type that are in force.
    overrides: Sequence[Override] = ()
    #: For a parked job: the use of its limit with these overrides, and the jobs before it in its line.
    limit: LimitState | None = None
    before_it: int | None = None
    #: The breaker that a parked job waits for.
    breaker: Breaker | None = None
    #: The setting that forces this breaker open or closed.
    forced: Setting | None = None
    #: Work of this job, or of its group, that publish stored for wake.
    owed: Owed | None = None
    lane: LaneDepth | None = None
    #: Functions whose mapping or schedule is not enabled, by verb: publish, work (of this lane), wake, reconcile.
    stopped: frozenset[str] = frozenset()


class Answer(Struct, frozen=True, kw_only=True):
    """Why the job is not running, or that it runs or has ended."""

    reason: Reason
    #: The first one answers the question.
    sentences: tuple[str, ...]
    #: When that changes at the latest by itself; None if this is unknown.
    until: datetime | None = None
