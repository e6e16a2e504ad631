"""Takes its time, so that its worker can be killed while it runs."""

import time

from pydantic import BaseModel, Field

from tidemill import Run, job_type


class Slow(BaseModel):
    """How long the first attempt takes."""

    seconds: float = Field(default=1.5, ge=0, le=1.5)


@job_type("demo.slow", payload=Slow)
def slow(payload: Slow, run: Run) -> dict[str, int]:
    if run.attempt == 1:
        time.sleep(payload.seconds)
    return {"attempts": run.attempt}
