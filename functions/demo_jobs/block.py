"""A depot that refuses parcels until it opens. A refused parcel blocks the later parcels of its group."""

import time

from pydantic import BaseModel

from functions.demo_jobs.ledger import appended
from tidemill import Done, GiveUp, Run, job_type


class Parcel(BaseModel):
    """A number for the ledger, and the time at which the depot opens, in seconds since 1970."""

    ledger: str
    number: int
    opens_at: float = 0.0


@job_type("demo.depot", payload=Parcel, on_dead="block")
def depot(payload: Parcel, run: Run) -> Done | GiveUp:  # noqa: ARG001 - every handler is given its run
    if time.time() < payload.opens_at:
        return GiveUp("the depot is closed")
    return Done(writes=[appended(payload.ledger, str(payload.number))])
