"""Fails permanently until its code is fixed, as `broken` does."""

import os

from pydantic import BaseModel

from tidemill import PermanentJobError, Run, job_type


class Poison(BaseModel):
    """The text that the handler cannot process."""

    body: str


@job_type("demo.poison", payload=Poison)
def poison(payload: Poison, run: Run) -> dict[str, str]:  # noqa: ARG001 - every handler is given its run
    if os.environ.get("TIDEMILL_DEMO_FIXED") == "yes":
        return {"set aside": payload.body}
    raise PermanentJobError(f"cannot digest {payload.body!r}")
