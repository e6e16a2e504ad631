"""The sample of the jobs whose lines `accepted` and `dispatched` a stage writes."""

import os
from zlib import crc32

from tidemill.names import Env


def sample_rate() -> float:
    """The part of all jobs, from 0 to 1. A stage that sets none writes the lines of all."""
    return float(os.environ.get(Env.LOG_SAMPLE_RATE) or 1)


def in_sample(job_id: str, rate: float) -> bool:
    """The same for all lines of a job."""
    return crc32(job_id.encode()) < rate * 2**32
