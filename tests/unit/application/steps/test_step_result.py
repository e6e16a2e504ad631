"""The result of a step as text, and back, as the annotation of its function says."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    Secret,
    SecretStr,
    computed_field,
    field_serializer,
    model_validator,
)

from tidemill.application.steps.step_result import StepResult
from tidemill.domain.errors import StepError
from tidemill.domain.steps.steps import LARGEST_STEP_BYTES

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
    assert result.read_back(text, value) == result.value(text) == value


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
        result.read_back(result.text(value), value)


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


class Part(BaseModel):
    """What a function says that it returns."""

    at: datetime | None = None


class Larger(Part):
    """What it returns in truth."""

    more: int = 1


class Secretive(BaseModel):
    """Has text that pydantic does not write."""

    parts: list[dict[str, SecretStr]] = []


class Summed(BaseModel, extra="forbid"):
    """Writes a field that it refuses."""

    of: list[int] = []

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def total(self) -> int:
        return sum(self.of)


class Renamed(BaseModel):
    """Writes a name that it does not read."""

    number: int = Field(serialization_alias="no", default=1)


class Excluded(BaseModel):
    """Needs a field that it does not write."""

    number: int = Field(exclude=True)


class Nested(BaseModel):
    """Has one of them in a part."""

    inner: list[Summed] = []


class Either(BaseModel):
    """Has text that may have been a time."""

    at: str | datetime = ""


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (Secretive, "/parts is a SecretStr, which is written as asterisks"),
        (Secret[int], "the result is a Secret, which is written as asterisks"),
        (Summed, "/total is a computed field, which is written, and Summed forbids extra fields"),
        (Renamed, "/number is written as 'no', and read as 'number'"),
        (Excluded, "/number is required, and excluded from what is written"),
        (list[Nested], "/inner/total is a computed field"),
        (Either, "/at may be a str or a datetime, and JSON has text for both"),
        (str | date | None, "the result may be a str or a date"),
    ],
)
def test_a_type_that_is_never_read_back_is_refused_before_the_step_runs(returned: Any, why: str) -> None:
    with pytest.raises(StepError) as refused:
        StepResult("charge", returning(returned)).require_readable()

    assert str(refused.value).startswith(f"no result of the step 'charge' would be read back as it is: {why}")


class Shown(BaseModel):
    """Writes its secret itself, and reads it back."""

    own: SecretStr = SecretStr("a")
    annotated: Annotated[SecretStr, PlainSerializer(lambda secret: secret.get_secret_value())] = SecretStr("b")

    @field_serializer("own")
    def _written(self, own: SecretStr) -> str:
        return own.get_secret_value()


class Lenient(BaseModel):
    """Reads what it writes under other names."""

    model_config = ConfigDict(populate_by_name=True)

    first: int = Field(validation_alias="one", default=1)
    second: int = Field(validation_alias=AliasChoices("2", "second"), default=2)


class Corrected(Summed):
    """Removes what it does not take."""

    @model_validator(mode="before")
    @classmethod
    def _without(cls, data: Any) -> Any:
        return {"of": data["of"]} if isinstance(data, dict) and "of" in data else data


class Tree(BaseModel):
    """Has parts of its own kind."""

    children: list["Tree"] = []


@dataclass(eq=False)
class Unequal:
    """Defines no equality."""

    number: int


@dataclass
class Point:
    """A class that the standard library makes."""

    x: int
    near: tuple[int, ...] = ()


#: In the hour that the end of summer time repeats.
_TWICE = datetime(2045, 10, 29, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    ("returned", "value"),
    [
        (Shown, Shown()),
        (Lenient, Lenient()),
        (Corrected, Corrected(of=[1])),
        (Tree, Tree(children=[Tree(children=[Tree()])])),
        (Point, Point(1, (2, 3))),
        (Part, Part(at=_TWICE)),
        (list[Part], [Part(at=datetime(2045, 1, 1, tzinfo=UTC))]),
        (dict[int, tuple[int, str]], {1: (2, "a")}),
        (set[int], {1, 2}),
        (Unequal, Unequal(number=1)),
        (Any, {"pair": (1, [2]), "flag": True}),
        (object, [(1,), 2.0]),
    ],
)
def test_what_pydantic_writes_and_reads_alike_comes_back(returned: Any, value: Any) -> None:
    result = StepResult("charge", returning(returned))

    result.require_readable()
    text = result.text(value)

    assert result.text(result.read_back(text, value)) == text


class Counted(BaseModel):
    """Has what is never written."""

    _count: int = PrivateAttr(default_factory=count(1).__next__)


class Place(NamedTuple):
    """Has names that JSON drops."""

    x: int


@pytest.mark.parametrize(
    ("returned", "value", "why"),
    [
        (Part, Larger(), "the value is a Larger, and reads back as a Part"),
        (list[Part], [Part(), Larger()], "/1 is a Larger, and reads back as a Part"),
        (object, date(2045, 3, 4), "the value is a date, and reads back as a str"),
        (Any, {1: "a", "1": "b"}, "the name 1 of the value is not text"),
        (Any, {"a": [{2: 3}]}, "the name 2 of /a/0 is not text"),
        (list[Counted], [Counted()], "/0 is a Counted, and reads back as another"),
        (Any, [Place(1)], "/0 is a Place, and reads back as a list"),
        (dict[str, Any], {"at": date(2045, 3, 4)}, "/at is a date, and reads back as a str"),
        (dict[str, Any], {"secret": SecretStr("a")}, "/secret is a SecretStr, and reads back as a str"),
    ],
)
def test_a_value_that_comes_back_as_another_is_refused_with_its_path(returned: Any, value: Any, why: str) -> None:
    result = StepResult("charge", returning(returned))
    result.require_readable()

    with pytest.raises(StepError) as refused:
        result.read_back(result.text(value), value)

    assert why in str(refused.value)


def returning(annotation: Any) -> Callable[..., Any]:
    """A function with this return annotation."""

    def function() -> Any:
        raise NotImplementedError

    function.__annotations__["return"] = annotation
    return function
