"""Types of which a model or a handler does what few expect: for the corpus. A failure is a death at once."""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final
from uuid import UUID, uuid4

from pydantic import BaseModel, ConfigDict, SecretStr, Strict, computed_field, model_validator

from tidemill import Continue, Done, PermanentJobError, Run, job_type


class Currency(Enum):
    EURO = "EUR"


class Amount(BaseModel):
    model_config = ConfigDict(strict=True)

    id: UUID
    at: datetime
    cents: int


class Order(BaseModel):
    """Strict in a part, and in two fields."""

    amount: Amount
    placed: Annotated[datetime, Strict()]
    currency: Annotated[Currency, Strict()]


@job_type("test.strict", payload=Order, max_attempts=1)
def strict(order: Order, _run: Run) -> dict[str, Any]:
    return order.model_dump(mode="json")


class Changing(BaseModel):
    """Changes its input in three ways."""

    model_config = ConfigDict(extra="allow")

    id: str
    tags: Any = None

    @model_validator(mode="before")
    @classmethod
    def _changed(cls, data: Any) -> Any:
        data.setdefault("id", uuid4().hex)
        data["seen"] = data.pop("legacy", None)
        data["tags"] = {"a"}
        return data


@job_type("test.changing", payload=Changing, max_attempts=1)
def changing(payload: Changing, _run: Run) -> Any:
    return (payload.model_extra or {})["seen"]


class Point(BaseModel):
    x: int = 1


class Place(Point):
    y: int = 2


class Summed(BaseModel, extra="forbid"):
    of: list[int]

    @computed_field  # type: ignore[prop-decorator]  # as pydantic documents it
    @property
    def total(self) -> int:
        return sum(self.of)


class MuteError(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise SystemExit(1)


def _secret() -> SecretStr:
    raise AssertionError("its effect would come before the refusal")


def _summed() -> Summed:
    raise AssertionError("its effect would come before the refusal")


def _point() -> Point:
    return Point()


def _place() -> Point:
    return Place()


def _raise(error: Exception) -> Any:
    raise error


#: By name, what the handler does.
KINDS: Final[Mapping[str, Callable[[Run], Any]]] = {
    "a tuple": lambda _run: (1, [2]),
    "two names of one text": lambda _run: {1: "a", "1": "b"},
    "a name that is a number": lambda _run: Done({"of": {1: "a"}}),
    "a checkpoint with such a name": lambda _run: Continue({1: "a"}),
    "a set": lambda _run: {1},
    "a step with a model": lambda run: run.step("a", _point).x,
    "a step with a secret": lambda run: run.step("a", _secret),
    "a step with a sum": lambda run: run.step("a", _summed),
    "a step with a part": lambda run: run.step("a", _place).x,
    "a group of errors": lambda _run: _raise(ExceptionGroup("tasks", [PermanentJobError("no"), ValueError("x")])),
    "an error without text": lambda _run: _raise(MuteError()),
}


class Kind(BaseModel):
    kind: str


@job_type("test.odd", payload=Kind, max_attempts=1)
def odd(payload: Kind, run: Run) -> Any:
    return KINDS[payload.kind](run)


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


@job_type("test.echo", payload=Anything, max_attempts=1)
def echo(payload: Anything, _run: Run) -> Any:
    return payload.model_extra
