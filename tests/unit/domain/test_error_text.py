"""Any exception has a text, also if its class raises."""

from typing import Any

import pytest

from tidemill.domain.attempt.error_groups import as_failure
from tidemill.domain.error_text import class_name, error_text, text_of
from tidemill.domain.errors import BatchCallError

UNREADABLE = "the text of the error could not be read"


def saying(said: Any) -> Exception:
    """An error whose text and representation are what is given, or raise it."""

    def say(_self: Exception) -> Any:
        if isinstance(said, BaseException):
            raise said
        return said

    error: Exception = type("OddError", (Exception,), {"__str__": say, "__repr__": say})()
    return error


class Cut(str):
    __slots__ = ()

    def __getitem__(self, _index: Any) -> str:
        raise SystemExit


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("no such card", "no such card"),
        ("", ""),
        ("caf\ud83d", "caf?"),
        (Cut("cut"), "cut"),
        (5, UNREADABLE),
        (None, UNREADABLE),
        (RuntimeError("no text"), UNREADABLE),
        (SystemExit(1), UNREADABLE),
        (KeyboardInterrupt(), UNREADABLE),
        (RecursionError(), UNREADABLE),
    ],
)
def test_each_error_has_a_text_also_if_its_class_raises(said: Any, text: str) -> None:
    assert text_of(saying(said)) == text
    assert error_text(saying(said)) == f"OddError: {text}"
    assert str(as_failure(saying(said))).endswith(text)
    assert str(BatchCallError(saying(said), 2)).startswith(f"OddError: {text}; the handler had 2 jobs")


def test_a_text_and_the_name_of_a_class_are_bounded() -> None:
    assert len(text_of(ValueError("x" * 100_000_000))) == 4096
    assert class_name(type("X" * 1_000, (Exception,), {})()) == "X" * 100
    assert text_of(ValueError(10**5_000)) == UNREADABLE


def test_a_class_whose_metaclass_raises_has_a_name() -> None:
    class Nameless(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]  # as any class may
            raise SystemExit

    assert class_name(Nameless("Odd", (Exception,), {})()) == UNREADABLE
