"""A type whose dead hold their group up."""

from typing import Any

from shared.jobs import Run, job_type
from tests.support.jobs.scripted import Anything, script


@job_type("test.blocking", payload=Anything, max_attempts=1, dead_head="block")
def blocking(payload: Anything, run: Run) -> Any:
    return script.handler(payload, run)
