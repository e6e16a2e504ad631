"""Compares live jobs with the job types of code that is not deployed yet. It changes nothing."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct, field

from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.ports import Payloads
from tidemill.domain.error_text import class_name
from tidemill.domain.errors import Fault, InvalidPayloadError, TidemillError, UnknownJobTypeError
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Limit
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line

#: How many payloads of one type are compared. Those outside of their documents cost a call each.
MOST_OF_A_TYPE: Final = 200
#: How many refused jobs of a type are named.
MOST_EXAMPLES: Final = 3


class Example(Struct, frozen=True, kw_only=True):
    """A live job whose payload the new model refuses, and the first fault. It holds no value of the payload."""

    tenant: str
    job_id: str
    fault: Fault


class CheckedType(Struct, kw_only=True):
    """The live jobs of one type, as far as they were read."""

    name: str
    #: Whether the new code declares the type.
    known: bool
    live: int = 0
    checked: int = 0
    refused: int = 0
    #: Those whose payload could not be read.
    unread: int = 0
    examples: list[Example] = field(default_factory=list)


class ModelCheck:
    """Takes live jobs one by one. `types` and `limits` are what it has found so far."""

    def __init__(self, job_types: JobTypes, payloads: Payloads, *, most_of_a_type: int = MOST_OF_A_TYPE) -> None:
        self._job_types = job_types
        self._payloads = payloads
        self._most_of_a_type = most_of_a_type
        self.types: dict[str, CheckedType] = {}
        #: The lines of the limit keys that running jobs hold.
        self.lines: set[Line] = set()

    def take(self, job: Job) -> None:
        job_type = self.known(job.type)
        found = self.types.setdefault(job.type, CheckedType(name=job.type, known=job_type is not None))
        found.live += 1
        if job_type is None or found.checked + found.unread >= self._most_of_a_type:
            return
        try:
            text = self._payloads.load(job)
        except TidemillError:
            # The job has ended since, or nothing can run it in any version.
            found.unread += 1
            return
        found.checked += 1
        faults, payload = _read(job_type, text)
        if faults:
            found.refused += 1
            if len(found.examples) < MOST_EXAMPLES:
                found.examples.append(Example(tenant=job.tenant, job_id=job.id, fault=faults[0]))
        elif job.state is State.RUNNING and (line := job_type.limit_line(payload, tenant=job.tenant, lane=job.lane)):
            self.lines.add(line)

    def limit_of(self, line: Line) -> Limit | None:
        """Return the limit of the new code.

        None if it has none, or if the name of the line does not say whose it is.
        """
        key = line.limit_key
        if key is None:
            return None
        job_type = self.known(key.type) if key.type else self._job_types.with_shared_limit(key.shared or "")
        return job_type.limit if job_type and job_type.shared_limit == key.shared else None

    def known(self, name: str) -> JobType | None:
        try:
            return self._job_types.get(name)
        except UnknownJobTypeError:
            return None


def _read(job_type: JobType, text: str) -> tuple[Sequence[Fault], Any]:
    try:
        return (), job_type.parse(text)
    except InvalidPayloadError as refusal:
        return refusal.faults, None
    except Exception as error:  # noqa: BLE001 - a validator may raise anything, and its text may hold values
        return [Fault("/payload", f"the model raises {class_name(error)}")], None
