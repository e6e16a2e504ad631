"""Runs long enough for its worker to be killed."""

import time

from pydantic import BaseModel, Field

from tidemill import Run, job_type


class Slow(BaseModel):
    """The duration of the first attempt."""

    seconds: float = Field(default=1.5, ge=0, le=1.5)


@job_type("demo.slow", payload=Slow)
def slow(payload: Slow, run: Run) -> dict[str, int]:
    if run.attempt == 1:
        time.sleep(payload.seconds)
    return {"attempts": run.attempt}
