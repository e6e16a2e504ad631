"""Attempts at one job in memory, with any collaborator replaced, and payloads that note their deletion."""

from typing import Any

from tests.support.builders import INVOCATION, NOW, reference_to, types_of
from tests.support.single_job import Clock, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_context import AttemptContext, AttemptHooks
from tidemill.application.job_types import JobType, JobTypes
from tidemill.domain.records import replace
from tidemill.in_memory.single_job import Inline, OneJob


def attempt_at(store: OneJob, job_type: JobType | None, clock: Clock, **changes: Any) -> Attempt:
    """`changes` are fields of the context, hooks or arguments of the attempt. Without a type, the worker knows none."""
    context = tools(store, types_of(job_type) if job_type else JobTypes({}), clock)  # type: ignore[arg-type]  # one job
    context = replace(context, **_taken(changes, AttemptContext))
    hooks = AttemptHooks(**_taken(changes, AttemptHooks))
    return Attempt(reference_to(store.job), context, **{"deadline": NOW + INVOCATION, "hooks": hooks, **changes})


def _taken(changes: dict[str, Any], of: type[AttemptContext | AttemptHooks]) -> dict[str, Any]:
    """The fields of this class, out of `changes`."""
    return {name: changes.pop(name) for name in set(of.__struct_fields__) & changes.keys()}


class Dropped(Inline):
    """Payloads that note which ones were deleted, by the id of their job."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        del tenant, location
        self.deleted.append(job_id)
