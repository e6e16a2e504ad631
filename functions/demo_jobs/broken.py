"""Always fails until its code is fixed. `TIDEMILL_DEMO_FIXED` set to "yes" stands for the fixed code."""

import os

from pydantic import BaseModel

from tidemill import Run, job_type


class Broken(BaseModel):
    """An order; any number will do."""

    order: int


@job_type("demo.broken", payload=Broken, max_attempts=2, backoff_seconds=0.5)
def broken(payload: Broken, run: Run) -> dict[str, int]:
    if os.environ.get("TIDEMILL_DEMO_FIXED") != "yes":
        raise LookupError(f"order {payload.order}: no such column")
    return {"order": payload.order, "attempts": run.attempt}
