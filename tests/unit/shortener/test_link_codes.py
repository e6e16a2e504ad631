"""Codes of links."""

from itertools import islice

import pytest

from shortener import link_codes


@pytest.mark.parametrize("code", ["a", "A-_9", "x" * 64, "Links", "links-page"])
def test_a_code_is_letters_digits_and_two_marks(code: str) -> None:
    assert link_codes.is_code(code)


@pytest.mark.parametrize("code", ["", "x" * 65, "a/b", "a b", "é", "a.b", "abc\n", "links"])
def test_anything_else_is_no_code(code: str) -> None:
    assert not link_codes.is_code(code)


@pytest.mark.parametrize("key", [None, "k"])
def test_a_made_up_code_is_a_code(key: str | None) -> None:
    made = list(islice(link_codes.candidates("tenant", key), 50))
    assert all(link_codes.is_code(code) and len(code) == 8 for code in made)
    assert len(set(made)) == 50


def test_the_same_key_makes_the_same_codes_in_the_same_order() -> None:
    assert list(islice(link_codes.candidates("tenant", "k"), 3)) == list(
        islice(link_codes.candidates("tenant", "k"), 3)
    )


@pytest.mark.parametrize("other", [("tenant", "l"), ("somebody", "k"), ("tenan", "tk")])
def test_another_key_or_tenant_makes_other_codes(other: tuple[str, str]) -> None:
    assert next(link_codes.candidates("tenant", "k")) != next(link_codes.candidates(*other))
