"""The `Run` that the handler of a claimed job gets."""

import json
from functools import partial
from typing import Any, NoReturn

from tidemill.application.attempt.checkpoints import checkpoints
from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.handler_context import HandlerContext
from tidemill.application.attempt.run import Run
from tidemill.application.attempt.run_log import RunLog
from tidemill.domain.errors import BatchHandlerError
from tidemill.domain.submission.trace_context import traceparent_of


def new_run(run: ClaimedRun, handler_context: HandlerContext) -> Run:
    job, job_type, context = run.job, run.job_type, run.context
    save = checkpoints(job, context.store, context.clock, under_way=run.attempt.require_under_way)
    return Run(
        job_id=job.id,
        tenant=job.tenant,
        attempt=job.attempt,
        max_attempts=job_type.retry.max_attempts,
        submitted_at=job.created_at,
        deadline=run.wall_deadline,
        idempotency_key=job.id,
        parent=job.parent,
        group=job.group.key,
        flow=job.flow.id if job.flow else None,
        parents=context.parents_of(job),
        hops=job.hops,
        signals={each.name: json.loads(each.data) for each in job.signals.received if not each.used},
        waited_for=job.signals.awaited.name if job.signals.awaited else None,
        resumed_from=None if job.progress.checkpoint is None else json.loads(job.progress.checkpoint),
        traceparent=traceparent_of(handler_context.trace),
        log=RunLog(handler_context.fields),
        save=save if job_type.batch is None else _refuse_checkpoint,
        read_flags=context.flags,
        observe=run.observe,
        read_strain=context.strain_level,
        take_step=run.take_step if job_type.batch is None else _refuse_step,
    )


def _refuse_checkpoint(_state: Any, _done: int | None, _total: int | None) -> NoReturn:
    """A checkpoint raises when its job is cancelled or lost, which would end the call of all others."""
    raise BatchHandlerError(
        "run.checkpoint does not work in a batch handler, since it may end the call of the other jobs: return Continue "
        "for this job, or declare its type without batch"
    )


def _refuse_step(_name: str, _call: "partial[Any]") -> NoReturn:
    """Refuse a step, as a checkpoint: it belongs to one job, and the call to all of them."""
    raise BatchHandlerError(
        "run.step does not work in a batch handler, since it may end the call of the other jobs: declare the type "
        "without batch"
    )
