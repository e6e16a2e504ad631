"""Writes its number into a ledger, after failing as often as it is told to. In a group, the numbers stand in order."""

from pydantic import BaseModel, Field

from functions.demo_jobs.ledger import appended
from tidemill import Done, Run, job_type


class Numbered(BaseModel):
    """What to write where."""

    ledger: str
    number: int
    failures: int = Field(default=0, ge=0, le=2)


@job_type("demo.ordered", payload=Numbered, max_attempts=3, backoff_seconds=0.5)
def ordered(payload: Numbered, run: Run) -> Done:
    if run.attempt <= payload.failures:
        raise ConnectionError("not yet")
    return Done({"group": run.group}, writes=[appended(payload.ledger, str(payload.number))])
