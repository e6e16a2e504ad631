"""Durable background jobs on AWS. Job types and applications import from here.

`tidemill.client` submits jobs from Python. `tidemill.testing` runs a job type in a test, without AWS.
"""

from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType
from tidemill.declarations.breaker import Breaker
from tidemill.declarations.event_sinks import event_sink
from tidemill.declarations.event_sources import EventBridgeRecord, S3Record, SnsRecord, TableRecord, event_source
from tidemill.declarations.events import Event, consumes, event_type
from tidemill.declarations.job_type_decorator import job_type
from tidemill.declarations.shared_limit import SharedLimit
from tidemill.domain.attempt.effects import Add, TransactWrite
from tidemill.domain.attempt.return_values import Cancelled, Continue, Done, GiveUp, Snooze, WaitFor
from tidemill.domain.breakers.downstream_errors import ErrorClass
from tidemill.domain.errors import (
    BatchHandlerError,
    BatchOutcomesError,
    BreakerOpenError,
    CancelRequestedError,
    InvalidPayloadError,
    JobTimeoutError,
    KeyReusedError,
    LeaseLostError,
    MissingInput,
    MissingResourceError,
    PayloadTooLargeError,
    PermanentJobError,
    RetryAfter,
    StepError,
    StepsChangedError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
)
from tidemill.domain.limits.adaptive_limit import Adaptive
from tidemill.domain.limits.limits import Rate
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.names import EXPORTS_PREFIX, Lane
from tidemill.settings import SettingError, setting

__all__ = [
    "EXPORTS_PREFIX",
    "Adaptive",
    "Add",
    "BatchHandlerError",
    "BatchOutcomesError",
    "Breaker",
    "BreakerOpenError",
    "CancelRequestedError",
    "Cancelled",
    "Continue",
    "Done",
    "ErrorClass",
    "Event",
    "EventBridgeRecord",
    "GiveUp",
    "InvalidPayloadError",
    "JobTimeoutError",
    "JobType",
    "KeyReusedError",
    "Lane",
    "LeaseLostError",
    "MissingInput",
    "MissingResourceError",
    "PayloadTooLargeError",
    "PermanentJobError",
    "Rate",
    "RetryAfter",
    "Run",
    "S3Record",
    "SettingError",
    "SharedLimit",
    "Snooze",
    "SnsRecord",
    "StepError",
    "StepsChangedError",
    "StoreUnavailableError",
    "Submission",
    "TableRecord",
    "TidemillError",
    "TransactWrite",
    "TransactionConflictError",
    "Unique",
    "UnknownJobTypeError",
    "UnloadedJobTypeError",
    "WaitFor",
    "consumes",
    "event_sink",
    "event_source",
    "event_type",
    "job_type",
    "setting",
]
