"""Runs longer than its job type allows. The attempt times out, and the rest of its batch continues."""

import time

from pydantic import BaseModel

from tidemill import Run, job_type

#: Longer than a slow machine takes for the rest of the batch: the worker finds the thread still running.
SECONDS = 20


class NoPayload(BaseModel):
    """An empty payload."""


@job_type("demo.overtime", payload=NoPayload, timeout_seconds=0.5, max_attempts=1)
def overtime(payload: NoPayload, run: Run) -> None:  # noqa: ARG001 - every handler is given its run
    time.sleep(SECONDS)
