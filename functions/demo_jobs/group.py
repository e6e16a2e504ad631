"""Fails as often as its payload says, then appends its number to a ledger. A group keeps the numbers in order.

The setting `broken_demo_release` of the stage stands for a release that breaks it.
"""

import os

from pydantic import BaseModel, Field

from functions.demo_jobs.ledger import appended
from tidemill import Done, PermanentJobError, Run, job_type


class Numbered(BaseModel):
    """The ledger, the number to append, and the number of attempts that fail."""

    ledger: str
    number: int
    failures: int = Field(default=0, ge=0, le=2)


@job_type("demo.ordered", payload=Numbered, max_attempts=3, backoff_seconds=0.5)
def ordered(payload: Numbered, run: Run) -> Done:
    if os.environ.get("TIDEMILL_DEMO_BROKEN") == "yes":
        raise PermanentJobError("this release cannot read the ledger")
    if run.attempt <= payload.failures:
        raise ConnectionError("not yet")
    return Done({"group": run.group}, writes=[appended(payload.ledger, str(payload.number))])
