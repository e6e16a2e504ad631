"""What a handler saves while it runs: the state to resume from, and its progress."""

from collections.abc import Callable
from operator import index
from typing import Any

from tidemill.application.attempt.handler_results import checkpoint_text
from tidemill.application.attempt.run import SaveCheckpoint
from tidemill.application.ports import AttemptStore, Checkpoint, Clock
from tidemill.domain.attempt.effects import MOST_DIGITS
from tidemill.domain.errors import CancelRequestedError, LeaseLostError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.time_constants import EPOCH, MILLISECOND


def checkpoints(job: Job, store: AttemptStore, clock: Clock, *, under_way: Callable[[], None]) -> SaveCheckpoint:
    """`Run.checkpoint`, for the run that claimed `job`. `under_way` raises if the run is over."""
    last = job.progress.checkpoint_at or EPOCH

    def save(state: Any, done: int | None, total: int | None) -> None:
        saved = Checkpoint(
            state=None if state is None else checkpoint_text(state),
            done=None if done is None else _whole("done", done),
            total=None if total is None else _whole("total", total),
        )
        under_way()
        nonlocal last
        # Each is later than the last, also by another clock: the store refuses an earlier one.
        last = max(clock(), last + MILLISECOND)
        try:
            cancel_requested = store.checkpoint(job, saved, now=last)
        except WriteRefusedError as refused:
            raise LeaseLostError("this run no longer holds the lease of the job") from refused
        if cancel_requested:
            raise CancelRequestedError("the job was asked to end")

    return save


def _whole(name: str, value: Any) -> int:
    """Raises `ValueError`. No version could read the document with any other value, nor end its job."""
    try:
        number = index(value)
    except TypeError:
        raise ValueError(f"{name} is {value!r}; it must be a whole number") from None
    if abs(number) >= 10**MOST_DIGITS:
        raise ValueError(f"{name} has more than {MOST_DIGITS} digits; use a smaller number")
    return number
