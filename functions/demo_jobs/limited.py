"""Two job types with limits: one run at a time for each limit key, and one start in a second for each limit key."""

import time
from datetime import timedelta

from pydantic import BaseModel, Field

from tidemill import Rate, Run, job_type


class Use(BaseModel):
    """The resource to use, which is the limit key, and for how long."""

    of: str
    seconds: float = Field(default=0.3, ge=0, le=1.5)


@job_type("demo.alone", payload=Use, concurrency_per_key=1, key=lambda use: use.of)
def alone(payload: Use, run: Run) -> None:  # noqa: ARG001 - every handler is given its run
    time.sleep(payload.seconds)


@job_type("demo.paced", payload=Use, rate_per_key=Rate(count=1, period=timedelta(seconds=1)), key=lambda use: use.of)
def paced(payload: Use, run: Run) -> None:
    pass
