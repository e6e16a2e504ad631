"""The kinds of fault, and how often each occurs in one seed."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from random import Random
from typing import Final


class Fault(StrEnum):
    """A kind of fault. Each must occur in any thousand seeds."""

    # The network between the SDK and a service, and busy services.
    NOT_SENT = "call never arrives"
    ANSWER_LOST = "call applied, answer lost"
    UNANSWERED = "call not answered on any retry"
    HELD_UP = "call held up, and sent again before it arrives"
    THROTTLED = "call throttled"
    SERVER_ERROR = "service answers 500"
    SERVICE_OUTAGE = "service is out"
    TRANSACTION_CONFLICT = "transaction conflict"
    TRANSACTION_UNDER_WAY = "transaction takes too long"
    SLOW_CALL = "call takes long"
    PARTIAL_BATCH = "batch read in part"
    INDEX_LAG = "index lags"
    REPEAT_CONFLICTS = "repeat of an insert meets a transaction"
    GROUP_THROTTLED = "group's item throttled for minutes"
    FILE_KEPT = "first deletion of a file fails"
    # Lambda.
    KILLED_BEFORE = "killed before a call"
    KILLED_AFTER = "killed after a call"
    TIMED_OUT = "function timed out"
    NOT_STARTED = "invocation throttled"
    FROZEN_MID_CALL = "frozen with a thread at work"
    CLOCK_SKEW = "clock is off"
    CLOCK_FAR_OFF = "clock is off by more than a lease allows for"
    COLD_START = "environment replaced"
    OUT_OF_MEMORY = "out of memory, with threads at work"
    # Two versions of the code at once.
    DEPLOYED = "next version runs"
    ROLLED_BACK = "next version rolled back"
    JOB_FILE_BROKEN = "job file of the next version broken"
    NEWER_DOCUMENT = "document of a newer version met"
    NEWER_MESSAGE = "message of a newer version met"
    UNKNOWN_TYPE = "job of another version's type met"
    REFUSED_PAYLOAD = "payload of another version's model met"
    HANDED_OVER = "work handed over by publish"
    # SQS.
    DUPLICATE = "message delivered twice"
    DELETE_LOST = "message delete lost"
    SEND_FAILED = "batch entry not sent"
    QUEUE_DENIED = "send to a queue denied"
    HIDE_FAILED = "visibility change failed"
    LATE_MESSAGE = "message overtaken"
    MESSAGE_LOST = "message lost"
    LANE_EMPTIED = "lane emptied by another consumer for days"
    RETURNED_LATE = "message of a dead worker returns hours late"
    RECEIVES_WASTED = "message has wasted its receives before"
    MOVED_TO_DLQ = "receives used up"
    # The stream and its mapping.
    STREAM_REPEATED = "stream batch delivered again"
    STREAM_OUTAGE = "stream stalls"
    STREAM_TRIMMED = "stream records lost"
    POISON = "handler kills its process"
    STRAY_THREAD = "handler outlives its time"
    SPOILED = "handler spoils its process"
    # A service outside AWS.
    DOWNSTREAM_DOWN = "downstream is down"
    DOWNSTREAM_SLOW = "downstream is slow"
    # Callers, operators, tenants, schedules and alarms.
    CALLER_REPEATS = "caller submits again"
    KEY_REUSED = "key used for another body"
    OPERATOR_CANCELS = "job cancelled by an operator"
    REDRIVEN = "dead job redriven"
    REDRIVEN_TWICE = "dead job redriven by two at once"
    DLQ_MOVED_NATIVELY = "DLQ messages moved back by the console"
    RECONCILED = "reconcile invoked by an operator"
    STALE_OPERATOR = "operator acts on a stale document"
    PURGED = "finished job purged"
    SCHEDULE_TWICE = "schedule fires twice"
    SCHEDULE_LATE = "schedule fires late"
    INVOCATION_RETRIED = "failed invocation retried"
    INVOCATION_REPEATED = "invocation repeated after success"
    ALARM = "alarm invokes reconcile"
    BATCHED = "batch submitted"
    BATCH_PARTLY_THROTTLED = "job of a batch throttled"
    BATCH_REPEATED = "batch submitted again"
    JOB_READ = "job read by its tenant"
    JOBS_LISTED = "jobs listed while they change"
    TENANT_CONTROLS = "job cancelled or retried by its tenant"
    CONTROL_REPEATED = "cancel or retry repeated"
    OTHER_TENANT = "job requested by another tenant"
    CURSOR_REUSED = "cursor used by another tenant or query"
    PAYLOAD_ORPHANED = "large payload without a job"
    EXPIRED_LATE = "expired document deleted late"


#: Probability for each occasion of a fault. A fault without a rate in a seed never occurs in it.
_RATES: Final = {
    Fault.NOT_SENT: 0.02,
    Fault.ANSWER_LOST: 0.03,
    Fault.UNANSWERED: 0.015,
    Fault.HELD_UP: 0.01,
    Fault.THROTTLED: 0.03,
    Fault.SERVER_ERROR: 0.02,
    Fault.SERVICE_OUTAGE: 0.002,
    Fault.TRANSACTION_CONFLICT: 0.2,
    Fault.TRANSACTION_UNDER_WAY: 0.05,
    Fault.SLOW_CALL: 0.03,
    Fault.PARTIAL_BATCH: 0.3,
    Fault.INDEX_LAG: 0.5,
    Fault.REPEAT_CONFLICTS: 0.1,
    Fault.GROUP_THROTTLED: 0.4,
    Fault.FILE_KEPT: 0.3,
    Fault.KILLED_BEFORE: 0.02,
    Fault.KILLED_AFTER: 0.02,
    Fault.TIMED_OUT: 0.02,
    Fault.SPOILED: 0.1,
    Fault.NOT_STARTED: 0.1,
    Fault.FROZEN_MID_CALL: 1.0,
    Fault.CLOCK_SKEW: 0.5,
    Fault.CLOCK_FAR_OFF: 0.3,
    Fault.COLD_START: 0.2,
    Fault.OUT_OF_MEMORY: 0.05,
    Fault.DEPLOYED: 0.6,
    Fault.ROLLED_BACK: 0.4,
    Fault.JOB_FILE_BROKEN: 0.4,
    Fault.DUPLICATE: 0.1,
    Fault.DELETE_LOST: 0.1,
    Fault.SEND_FAILED: 0.1,
    Fault.QUEUE_DENIED: 0.05,
    Fault.HIDE_FAILED: 0.2,
    Fault.LATE_MESSAGE: 0.1,
    Fault.MESSAGE_LOST: 0.03,
    Fault.LANE_EMPTIED: 0.1,
    Fault.RETURNED_LATE: 0.3,
    Fault.RECEIVES_WASTED: 0.05,
    Fault.STREAM_REPEATED: 0.1,
    Fault.STREAM_OUTAGE: 0.05,
    Fault.STREAM_TRIMMED: 0.02,
    Fault.CALLER_REPEATS: 0.3,
    Fault.KEY_REUSED: 0.2,
    Fault.OPERATOR_CANCELS: 0.5,
    Fault.REDRIVEN: 0.8,
    Fault.REDRIVEN_TWICE: 0.4,
    Fault.DLQ_MOVED_NATIVELY: 0.5,
    Fault.RECONCILED: 0.5,
    Fault.STALE_OPERATOR: 0.2,
    Fault.PURGED: 0.6,
    Fault.SCHEDULE_TWICE: 0.2,
    Fault.SCHEDULE_LATE: 0.2,
    Fault.INVOCATION_REPEATED: 0.1,
    Fault.BATCH_PARTLY_THROTTLED: 0.5,
    Fault.BATCH_REPEATED: 0.5,
    Fault.JOB_READ: 0.5,
    Fault.JOBS_LISTED: 0.5,
    Fault.TENANT_CONTROLS: 0.4,
    Fault.CONTROL_REPEATED: 0.3,
    Fault.OTHER_TENANT: 0.4,
    Fault.CURSOR_REUSED: 0.5,
    Fault.EXPIRED_LATE: 0.5,
}


#: Faults that can lose a message that was not acknowledged. Half of the seeds have none of them, so that these faults
#: cannot mask a loss by our own code.
LOSSES: Final = frozenset(
    {
        Fault.LATE_MESSAGE,
        Fault.RETURNED_LATE,
        Fault.LANE_EMPTIED,
        Fault.DLQ_MOVED_NATIVELY,
        Fault.MESSAGE_LOST,
        Fault.MOVED_TO_DLQ,
        Fault.RECEIVES_WASTED,
        Fault.STREAM_OUTAGE,
        Fault.STREAM_TRIMMED,
    }
)
#: After these the engine has nothing to repair. What they interrupt comes again by itself, as the message of a worker
#: that was killed by its handler does.
_HARMLESS: Final = frozenset(
    {
        Fault.COLD_START,
        Fault.DUPLICATE,
        Fault.STREAM_REPEATED,
        Fault.INDEX_LAG,
        Fault.PARTIAL_BATCH,
        Fault.CLOCK_SKEW,
        Fault.SLOW_CALL,
        Fault.HANDED_OVER,
        Fault.POISON,
        Fault.STRAY_THREAD,
        Fault.DOWNSTREAM_DOWN,
        Fault.DOWNSTREAM_SLOW,
        Fault.CALLER_REPEATS,
        Fault.KEY_REUSED,
        Fault.OPERATOR_CANCELS,
        Fault.REDRIVEN,
        Fault.REDRIVEN_TWICE,
        Fault.RECONCILED,
        Fault.STALE_OPERATOR,
        Fault.SCHEDULE_TWICE,
        Fault.SCHEDULE_LATE,
        Fault.INVOCATION_REPEATED,
        Fault.ALARM,
        Fault.BATCHED,
        Fault.BATCH_REPEATED,
        Fault.JOB_READ,
        Fault.JOBS_LISTED,
        Fault.TENANT_CONTROLS,
        Fault.CONTROL_REPEATED,
        Fault.OTHER_TENANT,
        Fault.CURSOR_REUSED,
        Fault.EXPIRED_LATE,
    }
)
#: With a higher rate no job would make progress.
_LARGEST_RATE: Final = 0.6
_STRENGTHS: Final = (0.0, 0.3, 1.0, 1.0, 2.0, 4.0)
_HALF: Final = 0.5


class Faults:
    """The faults of one seed. Half of the kinds are off in each, so that one fault does not always mask another."""

    def __init__(self, random: Random) -> None:
        self._random = random
        strength = random.choice(_STRENGTHS)
        lossless = random.random() < _HALF
        self.rates = {
            fault: min(rate * strength, _LARGEST_RATE)
            for fault, rate in _RATES.items()
            if random.random() < _HALF and not (lossless and fault in LOSSES)
        }
        if Fault.CLOCK_FAR_OFF in self.rates:
            # Damage by such clocks shows only if two workers have the same message.
            self.rates[Fault.DUPLICATE] = _HALF * _LARGEST_RATE
        self.counted: Counter[Fault] = Counter()
        #: Whether a fault has occurred after which the engine may have something to repair.
        self.disturbed = False
        self.stopped = False
        #: The time at which a seed stopped them.
        self.stopped_ms = 0

    def draws(self, fault: Fault, *, when_calm: bool = False) -> bool:
        """Draw whether the fault occurs. The caller counts it when it happens."""
        if self.stopped and not when_calm:
            return False
        rate = self.rates.get(fault, 0.0)
        return rate > 0 and self._random.random() < rate

    def occurs(self, fault: Fault, *, when_calm: bool = False) -> bool:
        """Draw whether the fault occurs now, and count it if so. With `when_calm`, also after faults have stopped."""
        if not self.draws(fault, when_calm=when_calm):
            return False
        self.count(fault)
        return True

    def one_of(self, faults: Sequence[Fault]) -> Fault | None:
        """Draw at most one of these faults."""
        return None if self.stopped else next((fault for fault in faults if self.occurs(fault)), None)

    def count(self, fault: Fault) -> None:
        """Count a fault that happened without a draw."""
        self.counted[fault] += 1
        self.disturbed = self.disturbed or fault not in _HARMLESS


def no_faults(random: Random) -> Faults:
    """None of them occurs."""
    faults = Faults(random)
    faults.rates = {}
    return faults
