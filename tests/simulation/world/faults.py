"""What can go wrong, and how often it does in one seed's weather."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from random import Random
from typing import Final


class Fault(StrEnum):
    """A kind of fault. Each must occur in every thousand seeds."""

    # The network between the SDK and a service, and services that are busy.
    NOT_SENT = "call never arrives"
    ANSWER_LOST = "call applied, answer lost"
    UNANSWERED = "call not answered, however often it is tried"
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
    NEWER_DOCUMENT = "document of a newer version met"
    NEWER_MESSAGE = "message of a newer version met"
    UNKNOWN_TYPE = "job of another version's type met"
    REFUSED_PAYLOAD = "payload of another version's model met"
    PASSED_OVER = "unreadable stream record given up"
    # SQS.
    DUPLICATE = "message delivered twice"
    DELETE_LOST = "message delete lost"
    SEND_FAILED = "batch entry not sent"
    HIDE_FAILED = "visibility change failed"
    LATE_MESSAGE = "message overtaken"
    MESSAGE_LOST = "message lost"
    LANE_EMPTIED = "lane emptied by a stranger for days"
    RETURNED_LATE = "what a dead worker held comes back hours late"
    RECEIVES_WASTED = "message received in vain before"
    MOVED_TO_DLQ = "receives used up"
    # The stream and its mapping.
    STREAM_REPEATED = "stream batch delivered again"
    STREAM_OUTAGE = "stream stalls"
    STREAM_TRIMMED = "stream records lost"
    POISON = "handler kills its process"
    # People and clocks.
    CALLER_REPEATS = "caller submits again"
    KEY_REUSED = "key used for another body"
    OPERATOR_CANCELS = "job cancelled by a person"
    REDRIVEN = "dead job redriven"
    REDRIVEN_TWICE = "redriven by two at once"
    DLQ_MOVED_NATIVELY = "letters moved back natively"
    RECONCILED = "reconciled meanwhile"
    STALE_OPERATOR = "somebody acts on what was a while ago"
    PURGED = "finished job purged"
    SCHEDULE_TWICE = "clock fires twice"
    SCHEDULE_LATE = "clock fires late"
    INVOCATION_RETRIED = "failed call tried again"
    INVOCATION_REPEATED = "call comes once more"
    ALARM = "alarm calls reconcile"
    BATCHED = "batch submitted"
    BATCH_PARTLY_THROTTLED = "job of a batch throttled"
    BATCH_REPEATED = "batch submitted again"
    JOB_READ = "job looked at by its owner"
    JOBS_LISTED = "jobs listed while they change"
    TENANT_CONTROLS = "job cancelled or retried by its owner"
    CONTROL_REPEATED = "cancel or retry sent again"
    OTHER_TENANT = "another's job asked for"
    CURSOR_REUSED = "another's cursor used"
    PAYLOAD_ORPHANED = "large payload without a job"
    EXPIRED_LATE = "expired document deleted late"


#: Per chance that a fault has, of one. What a seed does not draw stays off.
_RATES: Final = {
    Fault.NOT_SENT: 0.02,
    Fault.ANSWER_LOST: 0.03,
    Fault.UNANSWERED: 0.015,
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
    Fault.KILLED_BEFORE: 0.02,
    Fault.KILLED_AFTER: 0.02,
    Fault.TIMED_OUT: 0.02,
    Fault.NOT_STARTED: 0.1,
    Fault.FROZEN_MID_CALL: 1.0,
    Fault.CLOCK_SKEW: 0.5,
    Fault.CLOCK_FAR_OFF: 0.3,
    Fault.COLD_START: 0.2,
    Fault.OUT_OF_MEMORY: 0.05,
    Fault.DEPLOYED: 0.6,
    Fault.ROLLED_BACK: 0.4,
    Fault.DUPLICATE: 0.1,
    Fault.DELETE_LOST: 0.1,
    Fault.SEND_FAILED: 0.1,
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


#: Faults by which a message can be gone that nobody acknowledged. Half of the seeds have none of them, so that what our
#: own code loses has nothing to hide behind.
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
        Fault.PASSED_OVER,
    }
)
#: Above it nothing would ever get anywhere.
_LARGEST_RATE: Final = 0.6
_STRENGTHS: Final = (0.0, 0.3, 1.0, 1.0, 2.0, 4.0)
_HALF: Final = 0.5


class Faults:
    """The faults of one seed. Half of the kinds are off in any one, so that one fault does not always hide another."""

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
            # What such clocks spoil shows only where two workers have the same message.
            self.rates[Fault.DUPLICATE] = _HALF * _LARGEST_RATE
        self.counted: Counter[Fault] = Counter()
        self.stopped = False

    def draws(self, fault: Fault) -> bool:
        """Whether it is to happen. Whoever brings it about notes it."""
        rate = self.rates.get(fault, 0.0)
        return not self.stopped and rate > 0 and self._random.random() < rate

    def occurs(self, fault: Fault) -> bool:
        """Whether it happens here and now; counted if it does."""
        if not self.draws(fault):
            return False
        self.counted[fault] += 1
        return True

    def one_of(self, faults: Sequence[Fault]) -> Fault | None:
        """At most one of these."""
        return None if self.stopped else next((fault for fault in faults if self.occurs(fault)), None)

    def count(self, fault: Fault) -> None:
        """It has come about by itself."""
        self.counted[fault] += 1
