"""Threads whose requests are combined: which one works, for whom, and when it begins."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.attempt.combiner import Combiner
from tidemill.domain.errors import TidemillError
from tidemill.local.wait import wait_until

Work = Callable[[Sequence[int]], Sequence[int]]


class Works:
    """Doubles each number, and notes the numbers of each batch."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append(sorted(numbers))
        return [2 * number for number in numbers]


def _combiner(work: Work, *, expected: int, seconds: float = PATIENCE_SECONDS, most: int = 100) -> Combiner[int, int]:
    return Combiner(
        work, expected=range(expected), longest_wait_seconds=seconds, batch_of=lambda number: (number % 10, most)
    )


def _requested(combiner: Combiner[int, int], numbers: Sequence[int]) -> list[Future[int]]:
    pool = ThreadPoolExecutor(max_workers=len(numbers))
    futures = [pool.submit(combiner.combine, number, by=by) for by, number in enumerate(numbers)]
    pool.shutdown(wait=False)
    return futures


def test_one_thread_works_for_all_and_each_gets_its_own_answer() -> None:
    works = Works()

    answers = [each.result(PATIENCE_SECONDS) for each in _requested(_combiner(works, expected=3), [10, 20, 30])]

    assert (works.batches, answers) == ([[10, 20, 30]], [20, 40, 60])


def test_each_batch_has_a_worker_of_its_own_and_holds_no_more_than_it_may() -> None:
    works = Works()

    for each in _requested(_combiner(works, expected=5, most=2), [10, 20, 30, 1, 11]):
        each.result(PATIENCE_SECONDS)

    assert sorted(map(len, works.batches)) == [1, 2, 2]
    assert [1, 11] in works.batches


def test_it_waits_until_the_last_one_has_left() -> None:
    works = Works()
    combiner = _combiner(works, expected=3)
    first, second = _requested(combiner, [10, 20])
    wait_until(lambda: len(combiner._round.pending) == 2, PATIENCE_SECONDS, "both to have come")
    assert works.batches == []

    combiner.leave(2)
    combiner.leave(2)

    assert [first.result(PATIENCE_SECONDS), second.result(PATIENCE_SECONDS)] == [20, 40]
    assert works.batches == [[10, 20]]


def test_one_that_leaves_twice_counts_once() -> None:
    works = Works()
    combiner = _combiner(works, expected=3)
    combiner.leave(1)
    combiner.leave(1)

    (first,) = _requested(combiner, [10])
    wait_until(lambda: len(combiner._round.pending) == 1, PATIENCE_SECONDS, "the first to have come")
    assert works.batches == []
    combiner.leave(2)

    assert first.result(PATIENCE_SECONDS) == 20


def test_after_the_longest_wait_it_begins_without_the_others_who_meet_in_another_round() -> None:
    works = Works()
    combiner = _combiner(works, expected=2, seconds=0.01)

    assert combiner.combine(10, by=0) == 20
    assert combiner.combine(20, by=1) == 40
    assert works.batches == [[10], [20]]


def test_an_error_of_the_one_that_works_reaches_all() -> None:
    def fail(_numbers: Sequence[int]) -> list[int]:
        raise KeyError("no such thing")

    errors = [each.exception(PATIENCE_SECONDS) for each in _requested(_combiner(fail, expected=2), [10, 20])]

    assert {type(error) for error in errors} == {KeyError, TidemillError}


def test_one_that_is_alone_begins_at_once() -> None:
    assert _combiner(Works(), expected=0).combine(7, by="any") == 14


class Held:
    """A lock that says whether it is held."""

    held = False

    def __enter__(self) -> None:
        assert not self.held
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = False


def test_each_change_of_what_the_threads_share_holds_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = Held()
    used: list[str] = []

    def use(what: str) -> None:
        assert lock.held, what
        used.append(what)

    class Expected(set[object]):
        def discard(self, one: object) -> None:
            use("expected")
            super().discard(one)

    class Pending(list[Any]):
        def append(self, one: object) -> None:
            use("pending")
            super().append(one)

    combiner = _combiner(Works(), expected=2, seconds=0.001)
    begin = combiner._begin

    def begin_held() -> None:
        use("begin")
        begin()

    combiner._lock = lock  # type: ignore[assignment]  # the lock is only entered
    combiner._expected = Expected(combiner._expected)
    combiner._round.pending = Pending()
    monkeypatch.setattr(combiner, "_begin", begin_held)

    assert combiner.combine(10, by=0) == 20
    combiner.leave(1)

    assert used == ["pending", "expected", "begin", "expected", "begin"]


def test_one_whose_wait_ends_as_its_round_begins_does_not_begin_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    combiner = _combiner(Works(), expected=2)
    begun: list[int] = []
    begin = combiner._begin

    def note() -> None:
        begun.append(len(combiner._round.pending))
        begin()

    class Begun(Event):
        def wait(self, timeout: float | None = None) -> bool:
            combiner.leave(1)
            return False

    monkeypatch.setattr(combiner, "_begin", note)
    combiner._round.begun = Begun()

    assert combiner.combine(10, by=0) == 20
    assert begun == [1]
