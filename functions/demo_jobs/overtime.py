"""Takes longer than its own type allows, which is less than its lane would: it is told, and its batch goes on."""

import time

from pydantic import BaseModel

from tidemill import Run, job_type

SECONDS = 1.5


class Nothing(BaseModel):
    """It is late whatever it is given."""


@job_type("demo.overtime", payload=Nothing, timeout_seconds=0.5, max_attempts=1)
def overtime(payload: Nothing, run: Run) -> None:  # noqa: ARG001 - every handler is given its run
    time.sleep(SECONDS)
