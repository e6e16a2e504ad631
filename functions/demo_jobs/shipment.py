"""An event with three consumers. One of them fails permanently until its code is fixed, and delays no other."""

import os

from pydantic import BaseModel

from tidemill import PermanentJobError, Run, consumes, event_type, job_type


class Shipped(BaseModel):
    """The parcel that left, and the number of its items."""

    parcel: str
    items: int


shipped = event_type("demo.shipped", data=Shipped)


@consumes("demo.shipped")
@job_type("demo.track", payload=Shipped)
def track(shipment: Shipped, run: Run) -> dict[str, str]:  # noqa: ARG001 - every handler is given its run
    return {"tracked": shipment.parcel}


@consumes("demo.shipped")
@job_type("demo.restock", payload=Shipped)
def restock(shipment: Shipped, run: Run) -> dict[str, int]:  # noqa: ARG001 - every handler is given its run
    return {"restocked": shipment.items}


@consumes("demo.shipped")
@job_type("demo.bill", payload=Shipped)
def bill(shipment: Shipped, run: Run) -> dict[str, str]:  # noqa: ARG001 - every handler is given its run
    if os.environ.get("TIDEMILL_DEMO_FIXED") == "yes":
        return {"billed": shipment.parcel}
    raise PermanentJobError(f"no price for {shipment.parcel!r}")
