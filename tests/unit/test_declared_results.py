"""What the return annotation of a handler may say: the result of a job is JSON."""

import re
from datetime import datetime
from decimal import Decimal
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from tidemill import Done, Run, job_type
from tidemill.domain.errors import DeclarationError


class Person(BaseModel):
    name: str


class TypedResult(TypedDict):
    """A result with a type for each of its names."""

    at: str


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (Person, "Person, which is not JSON"),
        (Done | datetime | None, "datetime, which is not JSON"),
        (list[Decimal], "Decimal, which is not JSON"),
        (dict[str, set[int]], "set, which is not JSON"),
        (dict[int, str], "dict[int, str], whose names are not text"),
    ],
)
def test_a_handler_whose_result_is_never_json_is_refused(returned: Any, why: str) -> None:
    def handler(_payload: Person, _run: Run) -> Any: ...

    handler.__annotations__["return"] = returned

    with pytest.raises(DeclarationError, match=f"the handler of 'test.greet' returns {re.escape(why)}"):
        job_type("test.greet", payload=Person)(handler)


@pytest.mark.parametrize("returned", [None, Done | dict[str, Any], "Later", TypedResult, tuple[int, ...], object])
def test_a_handler_may_return_what_may_be_json(returned: Any) -> None:
    def handler(_payload: Person, _run: Run) -> Any: ...

    handler.__annotations__["return"] = returned

    job_type("test.greet", payload=Person)(handler)
