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
    THROTTLED = "call throttled"
    SERVER_ERROR = "service answers 500"
    SERVICE_OUTAGE = "service is out"
    TRANSACTION_CONFLICT = "transaction conflict"
    TRANSACTION_UNDER_WAY = "transaction takes too long"
    SLOW_CALL = "call takes long"
    PARTLY_READ = "batch read in part"
    INDEX_LAG = "index lags"
    # Lambda.
    KILLED_BEFORE = "killed before a call"
    KILLED_AFTER = "killed after a call"
    TIMED_OUT = "function timed out"
    NOT_STARTED = "invocation throttled"
    FROZEN_MID_CALL = "frozen with a thread at work"
    CLOCK_SKEW = "clock is off"
    CLOCK_FAR_OFF = "clock is off by more than a lease allows for"
    COLD_START = "environment replaced"
    # SQS.
    DUPLICATE = "message delivered twice"
    DELETE_LOST = "message delete lost"
    SEND_FAILED = "batch entry not sent"
    HIDE_FAILED = "visibility change failed"
    LATE_MESSAGE = "message overtaken"
    MESSAGE_LOST = "message lost"
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
    CLOCK_TWICE = "clock fires twice"
    EXPIRED_LATE = "expired document deleted late"


#: Per chance that a fault has, of one. What a seed does not draw stays off.
_RATES: Final = {
    Fault.NOT_SENT: 0.02,
    Fault.ANSWER_LOST: 0.03,
    Fault.THROTTLED: 0.03,
    Fault.SERVER_ERROR: 0.02,
    Fault.SERVICE_OUTAGE: 0.002,
    Fault.TRANSACTION_CONFLICT: 0.1,
    Fault.TRANSACTION_UNDER_WAY: 0.05,
    Fault.SLOW_CALL: 0.03,
    Fault.PARTLY_READ: 0.3,
    Fault.INDEX_LAG: 0.5,
    Fault.KILLED_BEFORE: 0.02,
    Fault.KILLED_AFTER: 0.02,
    Fault.TIMED_OUT: 0.02,
    Fault.NOT_STARTED: 0.1,
    Fault.FROZEN_MID_CALL: 1.0,
    Fault.CLOCK_SKEW: 0.5,
    Fault.CLOCK_FAR_OFF: 0.1,
    Fault.COLD_START: 0.2,
    Fault.DUPLICATE: 0.1,
    Fault.DELETE_LOST: 0.1,
    Fault.SEND_FAILED: 0.1,
    Fault.HIDE_FAILED: 0.2,
    Fault.LATE_MESSAGE: 0.1,
    Fault.MESSAGE_LOST: 0.03,
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
    Fault.CLOCK_TWICE: 0.2,
    Fault.EXPIRED_LATE: 0.5,
}


#: Faults by which a message can be gone that nobody acknowledged. Half of the seeds have none of them, so that what our
#: own code loses has nothing to hide behind.
LOSSES: Final = frozenset(
    {
        Fault.LATE_MESSAGE,
        Fault.LOST_AND_FOUND,
        Fault.LETTERS_MOVED,
        Fault.MESSAGE_LOST,
        Fault.MOVED_TO_LETTERS,
        Fault.RECEIVES_BURNED,
        Fault.STREAM_OUTAGE,
        Fault.STREAM_TRIMMED,
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
        self.counted: Counter[Fault] = Counter()
        self.calm = False

    def strikes(self, fault: Fault) -> bool:
        """Whether it happens here and now; counted if it does."""
        if self.calm or not (rate := self.rates.get(fault)) or self._random.random() >= rate:
            return False
        self.counted[fault] += 1
        return True

    def one_of(self, faults: Sequence[Fault]) -> Fault | None:
        """At most one of these."""
        return None if self.calm else next((fault for fault in faults if self.strikes(fault)), None)

    def note(self, fault: Fault) -> None:
        """It has come about by itself."""
        self.counted[fault] += 1
