"""Can never succeed, and says so."""

from pydantic import BaseModel

from shared.jobs import PermanentJobError, Run, job_type


class Poison(BaseModel):
    """What the handler chokes on."""

    body: str


@job_type("demo.poison", payload=Poison)
def poison(payload: Poison, run: Run) -> None:  # noqa: ARG001
    raise PermanentJobError(f"cannot digest {payload.body!r}")
