"""Each price says where it is from, and how far that was checked."""

import re

import pytest

from tidemill.cost.list_prices import LAMBDA_DURATION, Price, all_prices


@pytest.mark.parametrize("price", all_prices().values(), ids=list(all_prices()))
def test_a_price_has_a_page_of_aws_and_the_date_of_a_text_that_quotes_it_or_none(price: Price) -> None:
    assert price.source.startswith("https://aws.amazon.com/")
    assert re.fullmatch(r"(20\d\d-\d\d(-\d\d)?)?", price.quoted)
    assert price.dollars > 0
    assert price.units >= 1


def test_a_price_is_for_its_number_of_units() -> None:
    price = Price(dollars=0.5, units=1000, unit="thing", source="https://aws.amazon.com/", quoted="")

    assert price.of(4000) == 2.0
    assert LAMBDA_DURATION.of(1) == LAMBDA_DURATION.dollars
