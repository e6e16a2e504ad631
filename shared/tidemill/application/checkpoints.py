"""What a handler saves while it runs: the state to resume from, and its progress."""

from collections.abc import Callable
from typing import Any

from tidemill.application.handler_results import checkpoint_text
from tidemill.application.job_types import SaveCheckpoint
from tidemill.application.ports import AttemptStore, Checkpoint, Clock
from tidemill.domain.errors import CancelRequestedError, LeaseLostError, WriteRefusedError
from tidemill.domain.job import Job


def checkpoints(job: Job, store: AttemptStore, clock: Clock, *, under_way: Callable[[], None]) -> SaveCheckpoint:
    """`Run.checkpoint`, for the run that claimed `job`. `under_way` raises if the run is over."""

    def save(state: Any, done: int | None, total: int | None) -> None:
        saved = Checkpoint(state=None if state is None else checkpoint_text(state), done=done, total=total)
        under_way()
        try:
            cancel_requested = store.checkpoint(job, saved, now=clock())
        except WriteRefusedError as refused:
            raise LeaseLostError("this run no longer holds the lease of the job") from refused
        if cancel_requested:
            raise CancelRequestedError("the job was asked to end")

    return save
