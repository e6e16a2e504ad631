"""What a user waits for, and what the app can do without under strain. Both have the default lane critical."""

import time

from pydantic import BaseModel, Field

from functions.demo_jobs.ledger import appended
from tidemill import Done, Lane, Run, job_type


class Checkout(BaseModel):
    """The ledger, and the number to append."""

    ledger: str
    number: int


class Preview(BaseModel):
    """The time that the whole preview takes."""

    seconds: float = Field(default=1.0, ge=0, le=1.5)


@job_type("demo.checkout", payload=Checkout, lane=Lane.CRITICAL)
def checkout(payload: Checkout, run: Run) -> Done:  # noqa: ARG001 - every handler is given its run
    return Done(writes=[appended(payload.ledger, str(payload.number))])


@job_type("demo.preview", payload=Preview, lane=Lane.CRITICAL, importance="sheddable")
def preview(payload: Preview, run: Run) -> str:
    """Under strain, a rough one takes a tenth of the time."""
    time.sleep(payload.seconds / 10 if run.strained else payload.seconds)
    return "rough" if run.strained else "whole"
