"""Calls a service that names the time of the next attempt, which overrides the backoff of the job type."""

from pydantic import BaseModel, Field

from tidemill import RetryAfter, Run, job_type


class Request(BaseModel):
    """The delay that the service names at the first attempt."""

    retry_after_seconds: float = Field(default=1.0, ge=0, le=3600)


@job_type("demo.busy", payload=Request, backoff_seconds=900)
def busy(payload: Request, run: Run) -> dict[str, int]:
    if run.attempt == 1:
        raise RetryAfter(payload.retry_after_seconds, "the service is busy")
    return {"attempts": run.attempt}
