"""The codes of links, chosen and generated."""

from itertools import islice

import pytest

from shortener import link_codes


@pytest.mark.parametrize("code", ["a", "A-_9", "x" * 64, "Links", "links-page"])
def test_a_code_has_ascii_letters_digits_hyphens_and_underscores(code: str) -> None:
    assert link_codes.is_code(code)


@pytest.mark.parametrize("code", ["", "x" * 65, "a/b", "a b", "é", "a.b", "abc\n", "links"])
def test_other_texts_are_refused(code: str) -> None:
    assert not link_codes.is_code(code)


@pytest.mark.parametrize("key", [None, "k"])
def test_a_generated_code_is_valid(key: str | None) -> None:
    made = list(islice(link_codes.candidates("tenant", key), 50))
    assert all(link_codes.is_code(code) and len(code) == 8 for code in made)
    assert len(set(made)) == 50


def test_the_same_key_generates_the_same_codes_in_the_same_order() -> None:
    assert list(islice(link_codes.candidates("tenant", "k"), 3)) == list(
        islice(link_codes.candidates("tenant", "k"), 3)
    )


@pytest.mark.parametrize("other", [("tenant", "l"), ("another", "k"), ("tenan", "tk")])
def test_another_key_or_tenant_generates_other_codes(other: tuple[str, str]) -> None:
    assert next(link_codes.candidates("tenant", "k")) != next(link_codes.candidates(*other))
