"""A type whose jobs are claimed and settled together, with the handler of `scripted`."""

from typing import Any

from tests.support.jobs.scripted import Anything, script
from tidemill import Run, job_type


@job_type("test.grouped", payload=Anything, max_attempts=3, backoff_seconds=0, commit="grouped")
def grouped(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)
