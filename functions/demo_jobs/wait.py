"""Waits without using the processor, as a job does that calls a slow service. Its default lane is critical."""

import time

from pydantic import BaseModel, Field

from tidemill import Lane, Run, job_type


class Wait(BaseModel):
    """The duration of the wait."""

    seconds: float = Field(default=0.0, ge=0, le=1.5)


@job_type("demo.wait", payload=Wait, lane=Lane.CRITICAL)
def wait(payload: Wait, run: Run) -> None:  # noqa: ARG001 - every handler is given its run
    time.sleep(payload.seconds)
