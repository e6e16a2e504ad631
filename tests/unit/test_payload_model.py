"""A payload is JSON. A strict model takes each type in the form that JSON has for it."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from tidemill.domain.errors import InvalidPayloadError
from tidemill.payload_model import parser

PAID = {"id": "018c1a5e-7a9b-7c3d-8e5f-0123456789ab", "at": "2030-01-31T08:00:00Z", "amounts": ["1.50"]}


class Payment(BaseModel, strict=True):
    id: UUID
    at: datetime
    amounts: list[Decimal] = []
    note: str = ""


class Refund(Payment): ...


@pytest.mark.parametrize("model", [Payment, Refund])
def test_a_strict_model_takes_times_ids_and_decimals_as_text(model: type[Payment]) -> None:
    paid = parser(model)(PAID)

    assert paid == model(
        id=UUID("018c1a5e-7a9b-7c3d-8e5f-0123456789ab"),
        at=datetime(2030, 1, 31, 8, tzinfo=UTC),
        amounts=[Decimal("1.50")],
    )


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        (PAID | {"note": 5}, "/payload/note: Input should be a valid string"),
        (PAID | {"at": 5}, "/payload/at: Input should be a valid datetime"),
        (PAID | {"amounts": ["1", "x"]}, "/payload/amounts/1: Input should be a valid decimal"),
        (PAID | {"note": "\ud800"}, "/payload: Texts and names of members should be Unicode"),
        ({"id": PAID["id"]}, "/payload/at: Field required"),
        ([PAID], "/payload: Input should be a JSON object"),
    ],
)
def test_a_strict_model_refuses_other_types_with_the_pointer_of_the_fault(payload: Any, fault: str) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        parser(Payment)(payload)

    assert str(refused.value).startswith(fault)
