"""The payload of a job type: a pydantic model, and its errors as faults that name the path of each."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError

from tidemill.domain.errors import Fault, InvalidPayloadError


def faults(error: ValidationError, *, under: str = "") -> list[Fault]:
    """A pydantic error as faults, each with its JSON pointer below `under`."""
    return [
        Fault(path=under + "".join(f"/{_escaped(step)}" for step in detail["loc"]), message=_said(detail["msg"]))
        for detail in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _said(message: str) -> str:
    """Without what pydantic puts before the words of a validator's own."""
    return message.removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _escaped(step: int | str) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def parser(model: type[BaseModel]) -> Callable[[Any], BaseModel]:
    def parse(payload: Any) -> BaseModel:
        try:
            return model.model_validate(payload)
        except ValidationError as error:
            raise InvalidPayloadError(faults(error, under="/payload")) from error

    return parse
