"""A job as operators see it: the full document as JSON, and the fields that tables show."""

from datetime import datetime
from typing import Any

from tidemill.application.job_view import operator_view
from tidemill.cli.formatting import DASH
from tidemill.domain.job import Job


def reason(job: Job) -> str:
    return job.death or DASH


def error_class(job: Job) -> str:
    return job.causing_class or DASH


def ended_at(job: Job) -> datetime:
    return job.finished_at or job.created_at


def report(job: Job) -> dict[str, Any]:
    return operator_view(job, payload=job.payload.text)
