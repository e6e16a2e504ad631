"""The model check: what it compares of each type, and what it says of the rest."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import a_job, a_job_type, types_of
from tidemill.application.operations.model_check import MOST_EXAMPLES, MOST_OF_A_TYPE, CheckedType, Example, ModelCheck
from tidemill.domain.errors import Fault, InvalidPayloadError, MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.domain.limits.limit_key import LimitKey
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
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
    raise InvalidPayloadError([Fault("/sum", "must be a number"), Fault("/unit", "is missing")])


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


class Gone(Inline):
    def load(self, job: Job) -> str:
        raise KeyError(job.id)


def test_a_bug_in_the_read_of_a_payload_is_not_counted_as_an_unread_one() -> None:
    with pytest.raises(KeyError):
        ModelCheck(types_of(a_job_type()), Gone()).take(a_job())


def test_the_bound_of_a_check_is_the_one_that_it_is_given() -> None:
    check = ModelCheck(types_of(a_job_type()), Inline(), most_of_a_type=2)
    for _ in range(3):
        check.take(a_job())
    assert check.types["test.job"] == CheckedType(name="test.job", known=True, live=3, checked=2)
    assert (MOST_OF_A_TYPE, MOST_EXAMPLES) == (200, 3)


def _broken(_payload: Any) -> Any:
    raise ZeroDivisionError("with a value of the payload")


@pytest.mark.parametrize(
    ("parse", "faults"),
    [
        (_refused, [Fault("/sum", "must be a number")]),
        (_broken, [Fault("/payload", "the model raises ZeroDivisionError")]),
        (lambda payload: payload, []),
    ],
    ids=["refused", "broken", "accepted"],
)
def test_the_first_fault_of_a_payload_is_kept_without_a_value_of_it(
    parse: Callable[[Any], Any], faults: list[Fault]
) -> None:
    found, _ = _after(1, parse=parse, id="j", tenant="acme", state=State.RUNNING)
    assert found.examples == [Example(tenant="acme", job_id="j", fault=fault) for fault in faults]
    assert (found.refused, found.checked, found.unread) == (len(faults), 1, 0)


def test_a_refused_job_holds_no_limit_key_of_the_new_code() -> None:
    limited = replace(a_job_type(parse=_refused), limit=Limit(concurrency=1), limit_key=str)
    check = ModelCheck(types_of(limited), Inline())
    check.take(a_job(state=State.RUNNING))
    assert check.lines == set()


def test_a_running_job_of_a_type_without_a_limit_holds_none() -> None:
    check = ModelCheck(types_of(a_job_type()), Inline())
    check.take(a_job(state=State.RUNNING))
    assert check.lines == set()


LIMIT, SHARED = Limit(concurrency=1), Limit(concurrency=2)
TYPES = types_of(
    a_job_type(name="free"),
    replace(a_job_type(name="own"), limit=LIMIT),
    replace(a_job_type(name="crm.a"), limit=SHARED, shared_limit="crm"),
)


@pytest.mark.parametrize(
    ("key", "limit"),
    [
        (LimitKey(type="own"), LIMIT),
        (LimitKey(type="own", text="a", tenant="acme"), LIMIT),
        (LimitKey(type="free"), None),
        (LimitKey(type="gone"), None),
        (LimitKey(shared="crm"), SHARED),
        (LimitKey(shared="gone"), None),
        # The type shares a limit now, so its own limit key is gone.
        (LimitKey(type="crm.a"), None),
    ],
    ids=str,
)
def test_the_limit_of_a_line_is_that_of_the_new_code(key: LimitKey, limit: Limit | None) -> None:
    assert ModelCheck(TYPES, Inline()).limit_of(Line.for_limit(str(key))) == limit


def test_a_line_of_something_else_has_no_limit() -> None:
    assert ModelCheck(TYPES, Inline()).limit_of(Line.for_cap("acme", "bulk")) is None
