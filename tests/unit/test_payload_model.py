"""A payload is JSON. A strict model takes each type in the form that JSON has for it."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Strict, field_validator, model_validator

from tidemill.declarations.payload_model import parser
from tidemill.domain.errors import InvalidPayloadError

PAID = {"id": "018c1a5e-7a9b-7c3d-8e5f-0123456789ab", "at": "2030-01-31T08:00:00Z", "amounts": ["1.50"]}


class Payment(BaseModel, strict=True):
    id: UUID
    at: datetime
    amounts: list[Decimal] = []
    note: str = ""


class Refund(Payment): ...


class Currency(Enum):
    EURO = "EUR"


class Order(BaseModel):
    """Strict in a part and in a field."""

    payments: list[Payment]
    placed: Annotated[datetime, Strict()]
    currency: Annotated[Currency, Strict()]
    more: Any = None


@pytest.mark.parametrize("model", [Payment, Refund])
def test_a_strict_model_takes_times_ids_and_decimals_as_text(model: type[Payment]) -> None:
    paid = parser(model)(json.dumps(PAID))

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
        parser(Payment)(json.dumps(payload))

    assert str(refused.value).startswith(fault)


def test_a_strict_part_and_a_strict_field_take_the_forms_of_json() -> None:
    order = parser(Order)(json.dumps({"payments": [PAID], "placed": PAID["at"], "currency": "EUR"}))

    assert isinstance(order, Order)
    assert (order.payments[0].id, order.currency) == (UUID(str(PAID["id"])), Currency.EURO)
    assert order.placed == order.payments[0].at == datetime(2030, 1, 31, 8, tzinfo=UTC)


def test_half_a_surrogate_pair_is_accepted_where_a_model_takes_any_json() -> None:
    class Noted(BaseModel):
        note: Any

    assert parser(Noted)(json.dumps({"note": "\ud800"})) == Noted(note="\ud800")


class Unread(BaseModel, strict=True):
    at: datetime

    @model_validator(mode="before")
    @classmethod
    def unchanged(cls, value: Any) -> Any:
        return value


class Read(BaseModel, strict=True):
    at: datetime

    @field_validator("at", mode="before")
    @classmethod
    def read(cls, value: Any) -> datetime:
        return datetime.fromisoformat(value)


def test_a_strict_time_behind_an_early_validator_has_to_be_read_by_it() -> None:
    at = json.dumps({"at": "2030-01-31T08:00:00+00:00"})

    assert parser(Read)(at) == Read.model_construct(at=datetime(2030, 1, 31, 8, tzinfo=UTC))
    with pytest.raises(InvalidPayloadError, match="/payload/at: Input should be a valid datetime"):
        parser(Unread)(at)
