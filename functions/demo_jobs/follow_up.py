"""Books an order, and submits the job of its receipt in the transaction in which the order succeeds."""

from pydantic import BaseModel

from functions.demo_jobs.ledger import appended
from tidemill import Done, Run, Submission, job_type


class Order(BaseModel):
    """The order to book."""

    number: str


@job_type("demo.order", payload=Order)
def order(payload: Order, run: Run) -> Done:  # noqa: ARG001 - every handler is given its run
    return Done(
        {"booked": payload.number},
        writes=[appended(payload.number, "booked")],
        then=[Submission(type="demo.receipt", payload=payload.model_dump())],
    )


@job_type("demo.receipt", payload=Order)
def receipt(payload: Order, run: Run) -> Done:  # noqa: ARG001 - every handler is given its run
    return Done({"sent": payload.number}, writes=[appended(payload.number, "receipt sent")])
