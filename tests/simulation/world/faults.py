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
    PARTLY_READ = "batch read in part"
    INDEX_LAG = "index lags"
    REPEAT_CONFLICTS = "repeat of an insert meets a transaction"
    HOT_GROUP = "group's item throttled for minutes"
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
    LANE_ROBBED = "lane emptied by a stranger for days"
    LOST_AND_FOUND = "what a dead worker held comes back hours late"
    RECEIVES_BURNED = "message received in vain before"
    MOVED_TO_LETTERS = "receives used up"
    # The stream and its mapping.
    STREAM_REPEATED = "stream batch delivered again"
    STREAM_OUTAGE = "stream stalls"
    STREAM_TRIMMED = "stream records lost"
    POISON = "handler kills its process"
    # People and clocks.
    CALLER_REPEATS = "caller submits again"
    KEY_REUSED = "key used for another body"
    CALLED_OFF = "job cancelled by a person"
    REDRIVEN = "dead job redriven"
    REDRIVEN_TWICE = "redriven by two at once"
    LETTERS_MOVED = "letters moved back natively"
    RECONCILED = "reconciled meanwhile"
    ACTED_LATE = "somebody acts on what was a while ago"
    PURGED = "finished job purged"
    CLOCK_TWICE = "clock fires twice"
    CLOCK_LATE = "clock fires late"
    CALLED_AGAIN = "failed call tried again"
    CALL_REPEATED = "call comes once more"
    ALARM = "alarm calls reconcile"
    BATCHED = "batch submitted"
    BATCH_IN_PART = "job of a batch throttled"
    BATCH_AGAIN = "batch submitted again"
    LOOKED_AT = "job looked at by its owner"
    LISTED = "jobs listed while they change"
    CONTROLLED = "job cancelled or retried by its owner"
    CONTROLLED_AGAIN = "cancel or retry sent again"
    TRESPASS = "another's job asked for"
    CURSOR_TAKEN = "another's cursor used"
    LEFT_BEHIND = "large payload without a job"
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
    Fault.PARTLY_READ: 0.3,
    Fault.INDEX_LAG: 0.5,
    Fault.REPEAT_CONFLICTS: 0.1,
    Fault.HOT_GROUP: 0.4,
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
    Fault.LANE_ROBBED: 0.1,
    Fault.LOST_AND_FOUND: 0.3,
    Fault.RECEIVES_BURNED: 0.05,
    Fault.STREAM_REPEATED: 0.1,
    Fault.STREAM_OUTAGE: 0.05,
    Fault.STREAM_TRIMMED: 0.02,
    Fault.CALLER_REPEATS: 0.3,
    Fault.KEY_REUSED: 0.2,
    Fault.CALLED_OFF: 0.5,
    Fault.REDRIVEN: 0.8,
    Fault.REDRIVEN_TWICE: 0.4,
    Fault.LETTERS_MOVED: 0.5,
    Fault.RECONCILED: 0.5,
    Fault.ACTED_LATE: 0.2,
    Fault.PURGED: 0.6,
    Fault.CLOCK_TWICE: 0.2,
    Fault.CLOCK_LATE: 0.2,
    Fault.CALL_REPEATED: 0.1,
    Fault.BATCH_IN_PART: 0.5,
    Fault.BATCH_AGAIN: 0.5,
    Fault.LOOKED_AT: 0.5,
    Fault.LISTED: 0.5,
    Fault.CONTROLLED: 0.4,
    Fault.CONTROLLED_AGAIN: 0.3,
    Fault.TRESPASS: 0.4,
    Fault.CURSOR_TAKEN: 0.5,
    Fault.EXPIRED_LATE: 0.5,
}


#: Faults by which a message can be gone that nobody acknowledged. Half of the seeds have none of them, so that what our
#: own code loses has nothing to hide behind.
LOSSES: Final = frozenset(
    {
        Fault.LATE_MESSAGE,
        Fault.LOST_AND_FOUND,
        Fault.LANE_ROBBED,
        Fault.LETTERS_MOVED,
        Fault.MESSAGE_LOST,
        Fault.MOVED_TO_LETTERS,
        Fault.RECEIVES_BURNED,
        Fault.STREAM_OUTAGE,
        Fault.STREAM_TRIMMED,
        Fault.PASSED_OVER,
    }
)
#: Above it nothing would ever get anywhere.
_LARGEST_RATE: Final = 0.6
_STRENGTHS: Final = (0.0, 0.3, 1.0, 1.0, 2.0, 4.0)
_HALF: Final = 0.5


class Weather:
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
        self.calm = False

    def looms(self, fault: Fault) -> bool:
        """Whether it is to happen. Whoever brings it about notes it."""
        rate = self.rates.get(fault, 0.0)
        return not self.calm and rate > 0 and self._random.random() < rate

    def strikes(self, fault: Fault) -> bool:
        """Whether it happens here and now; counted if it does."""
        if not self.looms(fault):
            return False
        self.counted[fault] += 1
        return True

    def one_of(self, faults: Sequence[Fault]) -> Fault | None:
        """At most one of these."""
        return None if self.calm else next((fault for fault in faults if self.strikes(fault)), None)

    def note(self, fault: Fault) -> None:
        """It has come about by itself."""
        self.counted[fault] += 1
