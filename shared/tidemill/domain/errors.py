"""Every error of Tidemill has this one root, and carries what its reader needs as attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tidemill.domain.job import Job


#: 30 days: a handler that waits for longer should fail, or be submitted anew.
LONGEST_RETRY_AFTER_SECONDS: Final = 30 * 86_400.0


class TidemillError(Exception):
    """The root: catch this to catch all of ours and nothing else."""


class PermanentJobError(TidemillError):
    """Raised by a handler: this job can never succeed. It dies at once, whatever attempts are left."""


class RetryAfter(TidemillError):  # noqa: N818 - says what to do, where the others say what is wrong
    """Raised by a handler: this attempt failed, and the next begins after `seconds`, whatever the backoff says."""

    def __init__(self, seconds: float, reason: str = "") -> None:
        super().__init__(reason or f"again in {seconds:g} s")
        # Asked this way round, what is no number at all waits longest.
        within = min(LONGEST_RETRY_AFTER_SECONDS, seconds)
        self.delay = timedelta(seconds=max(within, 0.0))


class CancelRequestedError(TidemillError):
    """Raised by `run.checkpoint` when somebody asked for the job to end. Let it through, and the job is cancelled."""


class LeaseLostError(TidemillError):
    """Raised by `run.checkpoint` when the job is no longer this run's: whatever it does now is in vain."""


class CheckpointTooLargeError(PermanentJobError):
    """What the handler wanted to save is larger than a checkpoint may be, and would be again."""


class JobTimeoutError(TidemillError):
    """An attempt took longer than a job may; it counts as failed while its batch goes on."""


class WriteRefusedError(TidemillError):
    """The condition of a write did not hold. `current` is the document that refused it, or None if there is none."""

    def __init__(self, write: str, current: Job | None) -> None:
        super().__init__(f"{write} refused by {'a missing document' if current is None else f'state {current.state}'}")
        self.write = write
        self.current = current


class StoreUnavailableError(TidemillError):
    """The store or a queue did not answer, or throttled; whether the call took effect is unknown."""


class TransactionConflictError(TidemillError):
    """Another transaction holds one of the items. Nothing was written; nobody is at fault; try again."""


class EffectRefusedError(TidemillError):
    """A write that the handler asked for in `Done(writes=…)` was refused, so nothing at all was written."""


class TransactionTooLargeError(PermanentJobError):
    """`Done(writes=…, then=…)` asks for more than one transaction holds, and would again."""

    def __init__(self, entries: int, limit: int) -> None:
        super().__init__(
            f"the success, its writes and its follow-up jobs are {entries} entries of a transaction, "
            f"which holds {limit}; return Continue and do it in parts"
        )


class KeyReusedError(TidemillError):
    """The idempotency key was used before with another body."""


class NotAllowedNowError(TidemillError):
    """The job's state does not allow what was asked for. `current` is the document."""

    def __init__(self, what: str, current: Job) -> None:
        super().__init__(f"a job that is {current.state} cannot be {what}")
        self.current = current


class UnknownJobTypeError(TidemillError):
    """No job type of that name is known to this code. `known` lists those that are."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(f"unknown job type {name!r}; known types: {', '.join(sorted(known)) or 'none'}")
        self.name = name
        self.known = known


class PayloadTooLargeError(TidemillError):
    """The encoded payload exceeds `limit_bytes`."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(f"the payload is {size_bytes} bytes, and {limit_bytes} is the most a job may carry")
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input. `path` is a JSON pointer (RFC 6901) from the top of the body."""

    path: str
    message: str

    def __str__(self) -> str:
        """What is wrong with the whole has no path."""
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidPayloadError(TidemillError):
    """A payload does not fit the model of its type; each fault is listed."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = tuple(faults)


class MalformedDocumentError(TidemillError):
    """A document or message that this version cannot read."""


class NewerSchemaError(MalformedDocumentError):
    """It is no rubbish: a newer version wrote it, which runs beside this one during a deployment and will read it."""

    def __init__(self, what: str, schema: int, known: int) -> None:
        super().__init__(f"a {what} of schema {schema}; this code reads {known}")
        self.schema = schema
        self.known = known
