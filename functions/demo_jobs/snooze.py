"""Waits for a time without occupying a worker. A snooze does not use up an attempt."""

from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, Field

from tidemill import Run, Snooze, job_type


class Nap(BaseModel):
    """The time to wait after the submission."""

    seconds: float = Field(default=2.0, ge=0, le=3600)


@job_type("demo.snooze", payload=Nap)
def snooze(payload: Nap, run: Run) -> dict[str, int] | Snooze:
    left = run.submitted_at + timedelta(seconds=payload.seconds) - datetime.now(UTC)
    return Snooze(left) if left > timedelta(0) else {"attempts": run.attempt}
