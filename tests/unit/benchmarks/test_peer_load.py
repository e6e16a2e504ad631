"""The open-loop generator: a job is due at its time, also after a slow submission."""

import pytest

from tests.benchmarks.peers.load import Due, at_once, evenly, generate


class Clock:
    """Time that passes only while something sleeps or a submission takes its time."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_jobs_are_due_at_equal_distances_or_all_at_once() -> None:
    assert evenly(7, rate=4, seconds=1, start=100) == [Due(7, 100), Due(8, 100.25), Due(9, 100.5), Due(10, 100.75)]
    assert at_once(7, jobs=2, start=100) == [Due(7, 100), Due(8, 100)]


def test_a_job_is_submitted_when_it_is_due() -> None:
    clock = Clock()

    load = generate(
        evenly(1, rate=2, seconds=1.5, start=101), lambda _: None, threads=1, clock=clock, sleep=clock.sleep
    )

    assert load.accepted == {1: 101.0, 2: 101.5, 3: 102.0}


def test_a_slow_system_gets_late_jobs_at_once_and_none_is_left_out() -> None:
    clock = Clock()

    load = generate(
        evenly(1, rate=2, seconds=1.5, start=100), lambda _: clock.sleep(2), threads=1, clock=clock, sleep=clock.sleep
    )

    assert load.accepted == {1: 102.0, 2: 104.0, 3: 106.0}


def test_a_refused_job_is_not_accepted_and_the_first_error_is_kept() -> None:
    def submit(number: int) -> None:
        if number > 1:
            raise LookupError(f"no queue for {number}")

    load = generate(at_once(1, jobs=3, start=0), submit, threads=1)

    assert list(load.accepted) == [1]
    assert load.error == "LookupError: no queue for 2"


@pytest.mark.parametrize("threads", [1, 16])
def test_each_job_is_submitted_once_by_any_number_of_threads(threads: int) -> None:
    numbers: list[int] = []

    generate(at_once(1, jobs=200, start=0), numbers.append, threads=threads)

    assert sorted(numbers) == list(range(1, 201))
