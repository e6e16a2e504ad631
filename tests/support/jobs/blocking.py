"""A type whose dead jobs block their group."""

from typing import Any

from tests.support.jobs.scripted import Anything, script
from tidemill import Run, job_type


@job_type("test.blocking", payload=Anything, max_attempts=1, on_dead="block")
def blocking(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)
