"""The result of a step as text, and back, as the annotation of its function says."""

import json
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import BaseModel, Field

from tidemill.application.step_result import StepResult
from tidemill.domain.errors import StepError
from tidemill.domain.steps import LARGEST_STEP_BYTES

if TYPE_CHECKING:
    from decimal import Decimal


class Charge(BaseModel):
    """With a name in JSON that differs from that in Python."""

    number: int = Field(alias="id")


def plain(_value: Any):  # type: ignore[no-untyped-def]  # noqa: ANN201 - as a handler may
    """Says nothing of its result."""


def anything(_value: int) -> Any:
    """Says that its result may be anything."""


def a_charge() -> Charge:
    """Returns a model."""
    raise NotImplementedError


def a_day() -> date:
    """Returns what JSON has no form for."""
    raise NotImplementedError


def at_least_one() -> Annotated[int, Field(ge=1)]:
    """Bounds its result."""
    raise NotImplementedError


def a_text() -> str:
    """Returns text."""
    raise NotImplementedError


def unknown_here() -> "Decimal":
    """Names what exists for type checkers only."""
    raise NotImplementedError


def of_a_parameter(_value: "Decimal") -> date:
    """Its parameter, and not its result, names what exists for type checkers only."""
    raise NotImplementedError


def annotated(annotation: str) -> Callable[..., Any]:
    """A function that says of its result what Python cannot read."""

    def function() -> Any:
        raise NotImplementedError

    function.__annotations__["return"] = annotation
    return function


TOO_DEEP: list[Any] = []
for _ in range(100_000):
    TOO_DEEP = [TOO_DEEP]


class Called:
    """A function with a state."""

    def __call__(self) -> date:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (plain, {"a": [1, None]}, '{"a":[1,null]}'),
        (anything, "é", '"\\u00e9"'),
        (unknown_here, 5, "5"),
        (annotated("one two"), 5, "5"),
        (annotated("(int, str)"), 5, "5"),
        (partial(plain, 1), 5, "5"),
        (len, 5, "5"),
        (a_charge, Charge(id=7), '{"id":7}'),
        (a_day, date(2045, 3, 4), '"2045-03-04"'),
        (of_a_parameter, date(2045, 3, 4), '"2045-03-04"'),
        (Called(), date(2045, 3, 4), '"2045-03-04"'),
        (at_least_one, 1, "1"),
    ],
)
def test_a_result_is_recorded_as_its_function_says_and_comes_back(
    function: Callable[..., Any], value: Any, text: str
) -> None:
    result = StepResult("charge", function)
    assert result.text(value) == text
    assert result.read_back(text) == result.value(text) == value


@pytest.mark.parametrize(
    ("function", "value"),
    [(plain, object()), (plain, float("nan")), (plain, TOO_DEEP), (a_day, "soon")],
    ids=["object", "nan", "deep", "a_day"],
)
def test_what_is_neither_json_nor_what_the_function_says_is_not_recorded(
    function: Callable[..., Any], value: Any
) -> None:
    with pytest.raises(StepError, match="the result of the step 'charge' must be JSON, or what the return annotation"):
        StepResult("charge", function).text(value)


@pytest.mark.parametrize(
    ("function", "text"), [(a_day, "7"), (at_least_one, "0"), (a_charge, '{"number":7}'), (plain, "{")]
)
def test_a_record_that_the_function_of_now_cannot_have_made_is_not_returned(
    function: Callable[..., Any], text: str
) -> None:
    with pytest.raises(StepError, match="the recorded result of the step 'charge' does not fit what its function"):
        StepResult("charge", function).value(text)


@pytest.mark.parametrize(
    ("function", "value"), [(a_text, "\ud800"), (at_least_one, 0)], ids=["half a surrogate pair", "bound"]
)
def test_a_new_result_that_cannot_be_read_back_is_not_blamed_on_another_version(
    function: Callable[..., Any], value: Any
) -> None:
    result = StepResult("charge", function)

    with pytest.raises(StepError, match="the result of the step 'charge' cannot be read back as what its function"):
        result.read_back(result.text(value))


def test_the_largest_result_is_recorded_and_a_larger_one_is_not() -> None:
    result = StepResult("charge", plain)
    text = json.dumps("x" * (LARGEST_STEP_BYTES - 2))

    assert result.text("x" * (LARGEST_STEP_BYTES - 2)) == text
    with pytest.raises(StepError, match=f"'charge' is {LARGEST_STEP_BYTES + 1} bytes; a step may keep at most"):
        result.text("x" * (LARGEST_STEP_BYTES - 1))


def test_a_type_that_cannot_be_recorded_is_refused_before_the_step_runs() -> None:
    class Odd:
        pass

    def odd() -> Odd:
        raise NotImplementedError

    odd.__annotations__["return"] = Odd
    with pytest.raises(StepError, match=r"the function of the step 'charge' returns .*Odd.*, which cannot be recorded"):
        StepResult("charge", odd)
