"""What stands in for the table when a job runs in process, without AWS: one document, and nothing beside it."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from tidemill.application.ports import Checkpoint, Place
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job, Reference
from tidemill.domain.outcomes import Settlement, errors_after
from tidemill.domain.states import State, Write


class OneJob:
    """The job, and the writes of `JobStore` that a run makes to it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.saved: list[Checkpoint] = []
        self.settled = Settlement(state=job.state)

    def new_token(self) -> str:
        return f"token-{self.job.generation}"

    def claim(self, _reference: Reference, *, token: str, now: datetime, lease_end: datetime) -> Job:
        job = self.job
        self.job = replace(
            job,
            state=State.RUNNING,
            attempt=job.attempt + 1,
            owner=token,
            claimed_at=now,
            ready_at=job.due,
            due=lease_end,
        )
        return self.job

    def checkpoint(self, _job: Job, saved: Checkpoint, *, now: datetime) -> bool:
        self.saved.append(saved)
        kept = {"checkpoint": saved.state, "progress_done": saved.done, "progress_total": saved.total}
        self.job = replace(self.job, checkpoint_at=now, **_given(kept))
        return self.job.cancel_requested_at is not None

    def settle(self, _job: Job, settlement: Settlement, *, now: datetime) -> None:
        job, ends = self.job, settlement.state.terminal
        if job.cancel_requested_at and not ends:
            raise WriteRefusedError(Write.SETTLE, job)
        self.settled = settlement
        changed = {name: getattr(settlement, name) for name in ("result", "death", "checkpoint", "attempt", "hops")}
        self.job = replace(
            job,
            state=settlement.state,
            due=settlement.due,
            generation=job.generation + (not ends),
            owner=None,
            last_owner=job.owner,
            holds=settlement.holds,
            errors=errors_after(job, settlement),
            finished_at=now if ends else None,
            **_given(changed),
        )


class Inline:
    """`Payloads` that all stay in their documents."""

    def put_away(self, job: Job) -> Job:
        return job

    def load(self, job: Job) -> str:
        return job.payload or ""

    def delete(self, job: Job) -> None:
        pass


class Unlimited:
    """`Limits` that leave room for everybody."""

    def enter(self, place: Place, *, now: datetime) -> datetime | None:  # noqa: ARG002
        return None

    def leave(self, place: Place) -> None:
        pass


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """None leaves a field as it is."""
    return {name: value for name, value in fields.items() if value is not None}
