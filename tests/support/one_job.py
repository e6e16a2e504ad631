"""Attempts at one job in memory, with any collaborator replaced."""

from dataclasses import replace
from typing import Any

from tests.support.builders import INVOCATION, NOW, reference_to, types_of
from tests.support.single_job import Clock, tools
from tidemill.application.attempt import Attempt
from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.settle import AttemptContext
from tidemill.in_memory.single_job import OneJob


def attempt_at(store: OneJob, job_type: JobType | None, clock: Clock, **changes: Any) -> Attempt:
    """`changes` are members of the context, or arguments of the attempt. Without a type, the worker knows none."""
    context = tools(store, types_of(job_type) if job_type else JobTypes({}), clock)  # type: ignore[arg-type]  # one job
    names = AttemptContext.__dataclass_fields__.keys() & changes.keys()
    context = replace(context, **{name: changes.pop(name) for name in names})
    return Attempt(reference_to(store.job), context, **{"deadline": NOW + INVOCATION, **changes})
