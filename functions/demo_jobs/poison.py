"""Cannot be digested, and says so, until the release that knows what to do with it: see `broken`."""

import os

from pydantic import BaseModel

from tidemill import PermanentJobError, Run, job_type


class Poison(BaseModel):
    """What the handler chokes on."""

    body: str


@job_type("demo.poison", payload=Poison)
def poison(payload: Poison, run: Run) -> dict[str, str]:  # noqa: ARG001 - every handler is given its run
    if os.environ.get("TIDEMILL_DEMO_MENDED") == "yes":
        return {"set aside": payload.body}
    raise PermanentJobError(f"cannot digest {payload.body!r}")
