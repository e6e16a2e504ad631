"""The model check: what it compares of each type, and what it says of the rest."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import a_job, a_job_type, types_of
from tidemill.application.model_check import MOST_EXAMPLES, MOST_OF_A_TYPE, CheckedType, ModelCheck
from tidemill.domain.errors import Fault, InvalidPayloadError, MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.domain.limits import Limit
from tidemill.domain.states import State
from tidemill.in_memory.single_job import Inline


class Counted(Inline):
    """Counts the payloads that were asked for. That of a job with attempts is gone."""

    def __init__(self) -> None:
        self.asked = 0

    def load(self, job: Job) -> str:
        self.asked += 1
        if job.attempt:
            raise MalformedDocumentError(f"the payload of job {job.id} is missing")
        return super().load(job)


def _refused(_payload: Any) -> Any:
    raise InvalidPayloadError([Fault("/sum", "must be a number")])


def _after(jobs: int, *, parse: Callable[[Any], Any] = lambda payload: payload, **job: Any) -> tuple[CheckedType, int]:
    """What is found in so many jobs, and how many payloads were asked for."""
    payloads = Counted()
    check = ModelCheck(types_of(a_job_type(parse=parse)), payloads)
    for _ in range(jobs):
        check.take(a_job(**job))
    (found,) = check.types.values()
    return found, payloads.asked


@pytest.mark.parametrize(("attempt", "counted"), [(0, "checked"), (1, "unread")])
def test_the_payloads_of_so_many_jobs_of_a_type_are_read_and_the_rest_is_only_counted(
    attempt: int, counted: str
) -> None:
    found, asked = _after(MOST_OF_A_TYPE + 5, attempt=attempt)

    assert (found.live, asked, getattr(found, counted)) == (MOST_OF_A_TYPE + 5, MOST_OF_A_TYPE, MOST_OF_A_TYPE)
    assert found.checked + found.unread == MOST_OF_A_TYPE


def test_some_refused_jobs_are_named_and_all_are_counted() -> None:
    found, _ = _after(MOST_EXAMPLES + 2, parse=_refused)

    assert (found.refused, len(found.examples)) == (MOST_EXAMPLES + 2, MOST_EXAMPLES)
    assert {example.fault for example in found.examples} == {Fault("/sum", "must be a number")}


def test_no_payload_of_a_type_that_the_code_lacks_is_read() -> None:
    found, asked = _after(3, type="other")

    assert (found.known, found.live, found.checked, asked) == (False, 3, 0, 0)


def test_only_running_jobs_hold_a_limit_key() -> None:
    limited = replace(a_job_type(), limit=Limit(concurrency=1), limit_key=str)
    check = ModelCheck(types_of(limited), Inline())
    for state in State:
        check.take(a_job(state=state, payload=f'"{state}"'))

    (line,) = check.lines
    assert line.limit_key
    assert line.limit_key.text == State.RUNNING
