"""A lazy value is made once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from shortener.lazy import Lazy


def test_concurrent_threads_share_one_value() -> None:
    made: list[object] = []
    both_are_here = threading.Barrier(8)

    @Lazy
    def thing() -> object:
        made.append(object())
        return made[-1]

    def ask(_: int) -> object:
        both_are_here.wait()
        return thing()

    with ThreadPoolExecutor(8) as pool:
        got = set(pool.map(ask, range(8)))
    assert got == {made[0]}
    assert len(made) == 1


def test_none_counts_as_made() -> None:
    calls: list[int] = []
    once = Lazy(lambda: calls.append(1))
    once()
    once()
    assert calls == [1]


def test_a_dropped_value_is_made_again() -> None:
    once = Lazy(object)
    first = once()
    once.forget()
    assert once() is not first


def test_a_failure_is_not_kept() -> None:
    failures = [OSError("not yet")]

    @Lazy
    def thing() -> str:
        if failures:
            raise failures.pop()
        return "made"

    with pytest.raises(OSError, match="not yet"):
        thing()
    assert thing() == "made"
