"""The errors of Tidemill. All derive from `TidemillError` and carry their details as attributes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tidemill.domain import option_values
from tidemill.domain.error_text import error_text
from tidemill.domain.spans import require_wait
from tidemill.domain.waiting.signals import require_name

if TYPE_CHECKING:
    from tidemill.domain.job import Job

#: How many consecutive waits for one input a job may have, unless `MissingInput` says otherwise.
MOST_WAITS_FOR_INPUT: Final = 3
#: 30 days. A handler that must wait longer should fail, or submit a new job.
LONGEST_RETRY_AFTER_SECONDS: Final = 30 * 86_400.0
#: Names of one app often begin alike. A smaller share of equal characters would suggest unrelated types.
_SIMILAR: Final = 0.85
#: The faults that one error lists, as JSON text in ASCII. The answer to a batch holds them a hundred times, twice each,
#: and Lambda allows 6 MiB.
_LARGEST_FAULTS: Final = 8 * 1024
#: In characters. A message may list all job types.
_LONGEST_PATH: Final = 500
_LONGEST_MESSAGE: Final = 4 * 1024


class TidemillError(Exception):
    """The base class of all errors of Tidemill, and of no others."""


class DeclarationError(TidemillError, ValueError):
    """A job type is declared with a wrong name, option, payload or handler."""


class PermanentJobError(TidemillError):
    """Raised by a handler: this job can never succeed. It dies at once, even if attempts are left."""


class RetryAfter(TidemillError):  # noqa: N818 - names the remedy, where the others name the fault
    """Raised by a handler: this attempt failed, and the next begins after `seconds` instead of the backoff.

    A service may name a time that has passed, or one years ahead: the delay is from 0 to 30 days. Raises `TypeError`
    for seconds that are not a number.
    """

    def __init__(self, seconds: float, reason: str = "") -> None:
        given: object = seconds
        if not isinstance(given, int | float) or isinstance(given, bool):
            raise TypeError(f"RetryAfter takes seconds as a number, such as RetryAfter(30); got {seconds!r}")
        super().__init__(reason or f"again in {seconds:g} s")
        # With the constant first, `min` returns the constant for NaN, so NaN waits longest.
        within = min(LONGEST_RETRY_AFTER_SECONDS, seconds)
        self.delay = timedelta(seconds=max(within, 0.0))


class BreakerOpenError(TidemillError):
    """Raised instead of a call: the breaker of the downstream is open. Let it propagate, and the job waits for it."""

    def __init__(self, name: str, why: str = "") -> None:
        super().__init__(why or f"the breaker {name} is open")
        self.name = name


class MissingInput(TidemillError):  # noqa: N818 - as `RetryAfter`
    """Raised by a handler that lacks an input: run the job again when the signal `name` comes, or after `after`.

    The attempt is given back; the hop is counted. After `most` consecutive waits the job dies with the reason
    `missing input`.
    """

    def __init__(self, name: str, *, after: timedelta, most: int = MOST_WAITS_FOR_INPUT) -> None:
        require_name(name)
        require_wait(after, "after")
        if option_values.whole("most", most) < 1:
            raise ValueError(f"most must be at least 1; got {most}")
        super().__init__(f"the input {name} is missing")
        self.name = name
        self.after = after
        self.most = most


class SignalRefusedError(TidemillError):
    """The job has ended, or has another value under this name. Nothing was written."""


class CancelRequestedError(TidemillError):
    """Raised by `run.checkpoint` and `run.step` when a cancel was requested. Let it propagate: the job is cancelled."""


class LeaseLostError(TidemillError):
    """Raised by `run.checkpoint` and `run.step` when this run no longer holds its lease: it cannot write to the job."""


class CheckpointTooLargeError(PermanentJobError):
    """The checkpoint exceeds the size limit, and would exceed it on a retry too."""


class BatchRefusedError(TidemillError):
    """The batch is closed, has ended or is full, so the job cannot join it. Nothing was written."""


class FlowRefusedError(TidemillError):
    """The flow has ended or was cancelled, so no node can be added. Nothing was written."""


class StepError(PermanentJobError):
    """A step has a wrong name, or a result that cannot be recorded. A retry would meet the same."""


class StepsChangedError(StepError):
    """The steps that a run asks for do not begin with those that the job has recorded."""

    def __init__(self, recorded: Sequence[str], asked: Sequence[str]) -> None:
        super().__init__(
            "the steps of this job type have changed: let the old version finish its jobs first, or give the type "
            f"a new name; recorded: {', '.join(recorded)}; asked for: {', '.join(asked) or 'none'}"
        )
        self.recorded = tuple(recorded)
        self.asked = tuple(asked)


class BatchHandlerError(TidemillError):
    """A batch handler used something that only a handler of one job can use."""


class BatchOutcomesError(BatchHandlerError):
    """A batch handler did not return one outcome for each job."""


class BatchCallError(BatchHandlerError):
    """A batch handler raised `error` for several jobs, and nothing says which of them it is about.

    It costs them no attempt. Each runs alone next.
    """

    def __init__(self, error: Exception, jobs: int) -> None:
        super().__init__(f"{error_text(error)}; the handler had {jobs} jobs, and each runs alone next")
        self.error = error
        self.__cause__ = error


class JobTimeoutError(TidemillError):
    """An attempt exceeded the timeout of its job. It counts as failed; its batch continues."""


class StrayThreadError(TidemillError):
    """Another handler in the process ran beyond its time, so this one does not start. It costs its job no attempt."""


class WriteRefusedError(TidemillError):
    """The condition of a write did not hold. `current` is the document that refused it, or None if it is missing."""

    def __init__(self, write: str, current: Job | None) -> None:
        super().__init__(f"{write} refused by {'a missing document' if current is None else f'state {current.state}'}")
        self.write = write
        self.current = current


class StoreUnavailableError(TidemillError):
    """The store or a queue did not respond, or throttled. It is unknown whether the call took effect."""


class MissingResourceError(TidemillError):
    """A table or bucket does not exist in this account and region. Nothing was written to it."""

    def __init__(self, answer: str) -> None:
        super().__init__(
            f"{answer}; check the name, the account and the region: "
            "the outputs JobsTable and FilesBucket of the stack name its resources"
        )


class TransactionConflictError(TidemillError):
    """Another transaction holds one of the items. Nothing was written. Retry."""


class EffectRefusedError(TidemillError):
    """DynamoDB refused a write of the handler's `Done(writes=…)`, so the transaction wrote nothing."""


class InvalidEffectError(EffectRefusedError, PermanentJobError):
    """No retry can make a write of `Done(writes=…)`: its table is missing, or two writes have one item, for example."""


class TransactionTooLargeError(PermanentJobError):
    """`Done(writes=…, then=…)` exceeds the size of one transaction, and would exceed it on a retry too."""

    def __init__(self, entries: int, limit: int) -> None:
        super().__init__(
            f"the settle with its writes and follow-up jobs needs {entries} transaction entries, "
            f"but the limit is {limit}; return Continue and do it in parts"
        )


class OutdatedChangeError(TidemillError):
    """Another run has lowered an adaptive concurrency since this one entered, so its own change no longer applies."""


class KeyReusedError(TidemillError):
    """The caller has used this idempotency key before, with another body.

    The order of members means nothing. 1 and 1.0 are two numbers: handlers tell an `int` from a `float`.
    """


class NotAllowedNowError(TidemillError):
    """The job's state does not allow the requested operation. `current` is the document."""

    def __init__(self, operation: str, current: Job, why: str = "", *, instead: str = "") -> None:
        """`operation` is a past participle, such as "cancelled". `why` stands for the state of the job."""
        super().__init__(f"a job that is {why or current.state} cannot be {operation}{instead}")
        self.current = current


class UnknownJobTypeError(TidemillError):
    """This code does not know a job type of that name. `known` lists the names that it knows."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        from difflib import get_close_matches  # noqa: PLC0415 - seldom, and imports are most of a cold start

        #: The most similar name that it knows; None if none is similar.
        self.similar = next(iter(get_close_matches(name, known, n=1, cutoff=_SIMILAR)), None)
        known_types = f"known types: {', '.join(sorted(known)) or 'none'}"
        super().__init__(f"{_unknown_type(name, self.similar)}{' ' if self.similar else '; '}{known_types}")
        self.name = name
        self.known = known

    @property
    def summary(self) -> str:
        """Without the known types."""
        return _unknown_type(self.name, self.similar)


def _unknown_type(name: str, similar: str | None) -> str:
    return f"unknown job type {name!r}{f'; did you mean {similar!r}?' if similar else ''}"


class UnloadedJobTypeError(UnknownJobTypeError):
    """This code does not know the job type, but a broken job file may declare it. Fixed code will know it."""

    def __init__(self, name: str, known: Sequence[str], fault: str) -> None:
        super().__init__(name, known)
        self.fault = fault

    def __str__(self) -> str:
        return f"job type {self.name!r} is not loaded: {self.fault}"


class JobFileError(TidemillError):
    """A module of job types is broken. The text is one line with the file, the line and the reason.

    `names` are the job types that it concerns; empty if the module cannot be imported, since any may be among its own.
    """

    def __init__(self, message: str, names: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.names = tuple(names)


class UndoRefusedError(TidemillError):
    """The job cannot be undone: it has not succeeded, or has recorded no undo. Nothing was changed."""


class SupersedeRefusedError(TidemillError):
    """The job cannot supersede the other one. Nothing was written."""


class UndoFailedError(PermanentJobError):
    """The job that it supersedes will not be undone by itself. Undo that one, then redrive this one."""


class DuplicateJobTypeError(JobFileError):
    """Two job types have the same name."""


class PayloadTooLargeError(TidemillError):
    """The encoded payload, or the data of a signal, exceeds `limit_bytes`."""

    def __init__(self, size_bytes: int, limit_bytes: int, *, what: str = "payload") -> None:
        super().__init__(f"the {what} is {size_bytes} bytes as compact ASCII JSON; the limit is {limit_bytes} bytes")
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


class Fault(Struct, frozen=True):
    """One fault of an input. `path` is a JSON pointer (RFC 6901) from the top of the body; empty for the whole body."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidPayloadError(TidemillError):
    """A payload does not fit the model of its type.

    `faults` lists each fault. Of a very long list only the first ones, and as the last that there are more.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        """No fault is looked for beyond those that it lists."""
        self.faults = tuple(_first(faults))
        super().__init__("; ".join(map(str, self.faults)))


class EventModelError(TidemillError):
    """The model of an event type raised an error, so it neither accepts nor refuses the data of the event."""


def _first(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Return as many faults as an answer can hold. A wrong list of numbers has a fault for each of them."""
    left = _LARGEST_FAULTS
    for fault in map(_shortened, faults):
        left -= len(json.dumps([fault.path, fault.message]))
        if left < 0:
            yield Fault("", "there are more faults")
            return
        yield fault


def _shortened(fault: Fault) -> Fault:
    """With the path of the member around it, if its own is very long."""
    path, message = fault.path, fault.message
    if len(path) > _LONGEST_PATH:
        path = path[:_LONGEST_PATH].rpartition("/")[0]
    return Fault(path, message[:_LONGEST_MESSAGE])


class MalformedDocumentError(TidemillError):
    """This version cannot read a document or message."""


class NewerSchemaError(MalformedDocumentError):
    """A newer version wrote the document or message. It runs beside this one during a deployment and can read it."""

    def __init__(self, what: str, schema: int, known: int) -> None:
        super().__init__(f"a {what} of schema {schema}; this code reads {known}")
        self.schema = schema
        self.known = known


class OtherEpochError(MalformedDocumentError):
    """The message was sent before the jobs were restored from a backup, or after that to a worker from before."""

    def __init__(self, epoch: int, own: int) -> None:
        super().__init__(f"a message of epoch {epoch}; this function has epoch {own}")
        #: The function is the older one.
        self.later = epoch > own


class InvalidSettingError(TidemillError):
    """A setting of the runtime configuration has an unknown name or a wrong value. Nothing was changed."""


class NewJobRefusedError(TidemillError):
    """A new job is refused for the moment, and a repeated submission is not. Nothing was written."""


class SubmissionPausedError(NewJobRefusedError):
    """An operator has paused what this job belongs to, and refuses new jobs meanwhile. Nothing was written."""

    def __init__(self, scope: str, retry_after: timedelta) -> None:
        super().__init__(f"an operator has paused the {scope} of this job and refuses new ones; submit it again later")
        self.scope = scope
        self.retry_after = retry_after


class SubmissionShedError(NewJobRefusedError):
    """The app is under strain, and this type is sheddable. Nothing was written."""

    def __init__(self, type_: str, *, level: int, retry_after: timedelta) -> None:
        super().__init__(f"jobs of type {type_} are refused while the service is under strain; submit it again later")
        self.type = type_
        self.level = level
        self.retry_after = retry_after


class QuotaExceededError(NewJobRefusedError):
    """The tenant has submitted as many jobs in this period as its quota allows. Nothing was written."""

    def __init__(self, *, count: int, period: timedelta, known: int, retry_after: timedelta) -> None:
        """`known` is the count of this period, as far as the refusing function knows it."""
        jobs = "1 job" if count == 1 else f"{count} jobs"
        super().__init__(f"the quota of {jobs} in {period.total_seconds():g} s is used up; submit the job again later")
        self.count = count
        self.period = period
        self.known = known
        self.retry_after = retry_after


class ConfigurationConflictError(TidemillError):
    """The runtime configuration has changed since it was read. Nothing was changed."""
