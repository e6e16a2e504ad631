"""Asks a service that says when to come back, and comes back then, whatever the backoff of its type."""

from pydantic import BaseModel, Field

from tidemill import RetryAfter, Run, job_type


class Request(BaseModel):
    """What the service says the first time."""

    retry_after_seconds: float = Field(default=1.0, ge=0, le=3600)


@job_type("demo.busy", payload=Request, backoff_seconds=900)
def busy(payload: Request, run: Run) -> dict[str, int]:
    if run.attempt == 1:
        raise RetryAfter(payload.retry_after_seconds, "the service is busy")
    return {"attempts": run.attempt}
