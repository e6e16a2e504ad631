"""Durable background jobs on AWS. Job types and applications import from here.

`tidemill.client` submits jobs from Python. `tidemill.testing` runs a job type in a test, without AWS.
"""

from tidemill.application.job_types import JobType, Run
from tidemill.domain.errors import (
    CancelRequestedError,
    InvalidPayloadError,
    JobTimeoutError,
    KeyReusedError,
    LeaseLostError,
    PayloadTooLargeError,
    PermanentJobError,
    RetryAfter,
    StoreUnavailableError,
    TidemillError,
    UnknownJobTypeError,
)
from tidemill.domain.limits import Rate
from tidemill.domain.return_values import Cancelled, Continue, Done, GiveUp, Snooze
from tidemill.domain.submission import Submission, Unique
from tidemill.job_type_decorator import job_type
from tidemill.names import Lane

__all__ = [
    "CancelRequestedError",
    "Cancelled",
    "Continue",
    "Done",
    "GiveUp",
    "InvalidPayloadError",
    "JobTimeoutError",
    "JobType",
    "KeyReusedError",
    "Lane",
    "LeaseLostError",
    "PayloadTooLargeError",
    "PermanentJobError",
    "Rate",
    "RetryAfter",
    "Run",
    "Snooze",
    "StoreUnavailableError",
    "Submission",
    "TidemillError",
    "Unique",
    "UnknownJobTypeError",
    "job_type",
]
