"""The writes of a run while its handler is at work: checkpoints and steps. Pure. Each clause has a comment."""

from datetime import datetime

from tidemill.application.ports import Checkpoint
from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.steps.steps import Step
from tidemill.dynamodb.clauses import NO_CLAUSE, Clause
from tidemill.dynamodb.document import STEPS, STEPS_ATTRIBUTE
from tidemill.dynamodb.update_requests import Request, update_job


def checkpoint(job: Job, saved: Checkpoint, *, now: datetime) -> Request:
    sets = {"checkpoint_at": milliseconds(now)}
    if saved.state is not None:
        sets["checkpoint"] = text(saved.state)
    if saved.done is not None:
        sets["progress_done"] = number(saved.done)
    if saved.total is not None:
        sets["progress_total"] = number(saved.total)
    return update_job(
        job.tenant,
        job.id,
        sets=sets,
        conditions=[
            # The fence: a run that lost its lease must not overwrite the progress of the next run.
            "#owner = :owner",
            # A send that the network held up may arrive after a later checkpoint.
            "(attribute_not_exists(#checkpoint_at) OR #checkpoint_at < :new_checkpoint_at)",
        ],
        names=["owner"],
        values={":owner": text(job.lease.owner or "")},
    )


def record_step(job: Job, step: Step) -> Request:
    """Add a step to those of `job`."""
    known = len(job.steps.recorded)
    added = f"#{STEPS_ATTRIBUTE} = list_append(if_not_exists(#{STEPS_ATTRIBUTE}, :no_steps), :step)"
    return update_job(
        job.tenant,
        job.id,
        sets={},
        expressions=[added],
        conditions=[
            # The fence: a run that lost its lease must not add to the steps of the next run.
            "#owner = :owner",
            # The SDK sends the call again after its own success. Without this, the step would be there twice.
            f"size(#{STEPS_ATTRIBUTE}) = :known" if known else f"attribute_not_exists(#{STEPS_ATTRIBUTE})",
        ],
        names=["owner", STEPS_ATTRIBUTE],
        values={
            ":owner": text(job.lease.owner or ""),
            ":step": STEPS.encode((step,)),
            ":no_steps": STEPS.encode(()),
            **({":known": number(known)} if known else {}),
        },
    )


def used_up_steps(job: Job, settlement: Settlement) -> Clause:
    """The results of steps are of use only to a later run, and count in the size of the item."""
    return (
        Clause(removes=[STEPS_ATTRIBUTE]) if job.steps.recorded and settlement.state is State.SUCCEEDED else NO_CLAUSE
    )
