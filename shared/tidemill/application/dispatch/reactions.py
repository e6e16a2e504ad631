"""How a feature takes part in publish: it reacts to changed documents, or withholds messages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from tidemill.application.dispatch.owed import Work
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.job import Job


class PublishStep(StrEnum):
    """A step of publish, and the log message of its failure."""

    READ = "unreadable stream record"
    PARK = "job not parked"
    SEND = "message refused"
    ADVANCE = "group not advanced"
    FLOW = "flow not advanced"
    DELETE = "payload not deleted"


class Step(Struct, frozen=True):
    """What a feature does for a change. It may be repeated, and steps run at the same time, in any order."""

    #: The change to which it belongs.
    sequence: str
    name: PublishStep
    #: It is stored as owed work if `do` fails.
    work: Work
    #: Returns the job that it has moved, if it has moved one.
    do: Callable[[], Job | None]


class DueMessage(Struct, frozen=True):
    """The message that a change requests for its job."""

    sequence: str
    job: Job
    message: Dispatch
    #: The writer of the change may have sent the same message.
    may_be_sent: bool


#: Returns the steps that these changes ask for.
Reaction = Callable[[Sequence[Change]], Iterable[Step]]
#: Returns the messages that must not be sent, by the sequence of their change, each with what to do instead, if
#: anything. It gets only messages that no earlier one has withheld.
Withhold = Callable[[Sequence[DueMessage]], Mapping[str, Step | None]]
