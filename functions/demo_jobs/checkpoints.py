"""Takes more steps than one run has time for. Saves after each step, and continues in another invocation."""

import time
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, Field

from tidemill import Continue, Run, job_type


class Steps(BaseModel):
    """The number of steps, and the duration of each."""

    steps: int = Field(default=10, ge=1, le=10_000)
    seconds: float = Field(default=0.2, ge=0, le=0.5)


@job_type("demo.steps", payload=Steps)
def steps(payload: Steps, run: Run) -> dict[str, int] | Continue:
    done: int = run.resumed_from or 0
    while done < payload.steps:
        if datetime.now(UTC) + timedelta(seconds=2 * payload.seconds) >= run.deadline:
            return Continue(checkpoint=done)
        time.sleep(payload.seconds)
        done += 1
        run.log.info("step", extra={"done": done})
        run.checkpoint(done, done=done, total=payload.steps)
    return {"steps": done}
