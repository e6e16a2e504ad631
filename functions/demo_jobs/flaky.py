"""Fails as often as its payload says, then succeeds."""

from pydantic import BaseModel, Field

from tidemill import Run, job_type


class Flaky(BaseModel):
    """The number of attempts that fail."""

    failures: int = Field(default=2, ge=0, le=5)


class NotYetError(Exception):
    """Stands for the error of a service that is down for a moment."""


@job_type("demo.flaky", payload=Flaky, max_attempts=6, backoff_seconds=0.5)
def flaky(payload: Flaky, run: Run) -> dict[str, int]:
    if run.attempt <= payload.failures:
        raise NotYetError(f"failing {payload.failures} times, this is {run.attempt}")
    return {"attempts": run.attempt}
