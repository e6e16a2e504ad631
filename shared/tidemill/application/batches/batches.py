"""Open a batch, close it, and cancel it. The job type in `tidemill.batch` waits for its members."""

from datetime import datetime

from tidemill.application.control.control import Control
from tidemill.application.submission.later_jobs import asked, facts_of, faults_of
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Submit
from tidemill.application.submission.validation import require_key_type, require_types
from tidemill.domain.batches.batches import CLOSED, Batch, Opening, closed_at, is_batch
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.errors import (
    InvalidPayloadError,
    UnloadedJobTypeError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.names import BATCH_TYPE


def open_batch(batch: Batch, submit: Submit, *, tenant: str, trace: str) -> Accepted:
    """Write the job of the batch; `replayed` if an earlier opening with the key did.

    Raises `InvalidPayloadError` with the path of each fault, and what `Submit` raises.
    """
    require_key_type(batch.key)
    for name, callback in batch.callbacks.items():
        require_types(callback, under=f"/{name}")
    callbacks = {name: asked(callback) for name, callback in batch.callbacks.items()}
    opening = Opening(
        type=BATCH_TYPE,
        payload=callbacks,
        asked=callbacks,
        # Batches and jobs may have equal keys.
        key=None if batch.key is None else f"batch/{batch.key}",
        tags=batch.tags,
        batch=batch.batch,
    )
    try:
        _require_sound(batch, submit)
    except (InvalidPayloadError, UnloadedJobTypeError) as refused:
        return submit.earlier(opening, tenant=tenant, refused=refused)
    facts = {
        name: callbacks[name]
        | facts_of(submit.job_types.get(callback.type), lane=callback.lane, max_age=callback.max_age)
        for name, callback in batch.callbacks.items()
    }
    return submit(replace(opening, payload=facts), tenant=tenant, trace=trace)


def close_batch(control: Control, tenant: str, batch_id: str, *, now: datetime) -> Job | None:
    """Let no more jobs join, and return the batch; None if the tenant has no such batch.

    Its job closes the pages, so a job that was about to join may still do so. A batch whose workers crashed too often
    may be dead before its close, and keeps the close for its redrive. May be repeated: a closed batch stays as it is.

    Raises `SignalRefusedError` if its job was cancelled while it was open.
    """
    batch = control.find(tenant, batch_id)
    if batch is None or not is_batch(batch):
        return None
    if closed_at(batch, now=now) is not None:
        return batch
    return control.signal_composite(tenant, batch_id, CLOSED, kept_dead=True)


def cancel_batch(control: Control, tenant: str, batch_id: str, *, kept_dead: bool = False) -> Job | None:
    """Let no more jobs join, cancel those that have not ended, and return the batch; None without such a batch.

    Its job cancels them. May be repeated. Raises `SignalRefusedError` if the batch has ended. `kept_dead`: a dead one
    keeps the cancel for its run after a redrive.
    """
    batch = control.find(tenant, batch_id)
    if batch is None or not is_batch(batch):
        return None
    control.signal_composite(tenant, batch_id, CANCELLED, kept_dead=kept_dead)
    # The one that an open batch waits for.
    return control.signal_composite(tenant, batch_id, CLOSED, kept_dead=kept_dead)


def _require_sound(batch: Batch, submit: Submit) -> None:
    """Raises `InvalidPayloadError`, and `UnloadedJobTypeError` while a job file is broken that may declare a type."""
    found = [
        fault
        for name, callback in batch.callbacks.items()
        for fault in faults_of(callback, submit, path=f"/{name}", kind="a callback")
    ]
    if found:
        raise InvalidPayloadError(found)
