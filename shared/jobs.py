"""What a file in `functions/jobs` imports: the decorator, the run that it is given, and what it may return or raise.

class Welcome(BaseModel):
    address: str

@job_type("mail.welcome", payload=Welcome, max_attempts=5)
def welcome(payload: Welcome, run: Run) -> None: ...
"""

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from shared.application.job_types import JobType, Run
from shared.domain.errors import Fault, InvalidPayloadError, PermanentJobError
from shared.domain.outcomes import Done
from shared.domain.retry import LONGEST_BACKOFF_SECONDS, RetryPolicy
from shared.names import Lane

__all__ = ["Done", "JobType", "PermanentJobError", "Run", "job_type"]

Payload = TypeVar("Payload", bound=BaseModel)


def job_type(
    name: str,
    *,
    payload: type[Payload],
    lane: Lane = Lane.DEFAULT,
    max_attempts: int = 8,
    backoff_seconds: float = 2.0,
    backoff_cap_seconds: float = LONGEST_BACKOFF_SECONDS,
) -> Callable[[Callable[[Payload, Run], Any]], JobType]:
    """Declare a job type. The handler is called with the payload as its model and the run it is in.

    What it returns is the job's result and must be JSON of at most 32 KiB, or `Done` for effects that commit with
    the success. `PermanentJobError` ends the job at once; any other exception means another attempt after a random
    delay of at most `backoff_seconds`, a ceiling that doubles with each attempt up to `backoff_cap_seconds`.
    """
    retry = RetryPolicy(
        max_attempts=max_attempts, backoff_seconds=backoff_seconds, backoff_cap_seconds=backoff_cap_seconds
    )

    def declare(handler: Callable[[Payload, Run], Any]) -> JobType:
        return JobType(name=name, lane=lane, retry=retry, parse=_parser(payload), handler=handler)

    return declare


def faults(error: ValidationError, *, under: str = "") -> list[Fault]:
    """A pydantic error as faults, each with its JSON pointer below `under`."""
    return [
        Fault(path=under + "".join(f"/{_escaped(step)}" for step in detail["loc"]), message=detail["msg"])
        for detail in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _escaped(step: int | str) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def _parser(model: type[BaseModel]) -> Callable[[Any], BaseModel]:
    def parse(payload: Any) -> BaseModel:
        try:
            return model.model_validate(payload)
        except ValidationError as error:
            raise InvalidPayloadError(faults(error, under="/payload")) from error

    return parse
