"""A breaker counts a call of several jobs once, and the run that failed waits for what other callers say."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import a_job
from tests.support.recorded_breakers import DEADLINE, DOWN, LATE, MAPS, PAY, ARun
from tidemill.application.breakers.breaker_use import SharedCall
from tidemill.domain.attempt.return_values import Snooze
from tidemill.domain.errors import PermanentJobError


def test_a_call_that_fails_again_in_one_run_waits_for_what_others_say() -> None:
    run = ARun()
    run.use.admit(MAPS)
    run.use.leave(MAPS, DOWN)
    assert run.breakers.heard == []

    run.use.admit(MAPS)

    assert run.breakers.heard == [("maps", DEADLINE)]


@pytest.mark.parametrize(("error", "heard"), [(DOWN, ["maps", "pay"]), (LATE, []), (KeyError("a"), []), (None, [])])
def test_a_run_that_the_downstream_failed_waits_for_what_others_say(error: Exception | None, heard: list[str]) -> None:
    run = ARun(PAY)
    run.use.admit_depends_on()
    run.use.admit(MAPS)
    run.use.leave(MAPS, error)

    run.use.handler_ended(error)

    assert sorted(run.breakers.heard) == [(name, DEADLINE) for name in heard]


@pytest.mark.parametrize(
    ("outcomes", "own", "result"),
    [
        ((), DOWN, "failed"),
        ((), None, "succeeded"),
        ((DOWN, DOWN), DOWN, "failed"),
        # The downstream has served one of the jobs.
        (("a", DOWN), DOWN, "succeeded"),
        ((DOWN, PermanentJobError("no")), DOWN, "succeeded"),
        ((DOWN, KeyError("a")), KeyError("a"), "failed"),
        ((Snooze(timedelta(seconds=5)), DOWN), DOWN, "failed"),
        ((KeyError("a"), Snooze(timedelta(seconds=5))), KeyError("a"), None),
    ],
)
def test_a_call_of_several_jobs_counts_once_as_that_of_the_job_that_was_served_best(
    outcomes: tuple[Any, ...], own: Exception | None, result: str | None
) -> None:
    call, runs = SharedCall(), [ARun(PAY, job=a_job()) for _ in range(3)]
    call.outcomes = outcomes
    for run in runs:
        run.use.admit_depends_on()
        run.use.share(call)
        run.use.handler_ended(own)

    counted = [counts for run in runs for counts in run.breakers.counted]
    assert counted == ([True, False, False] if result else [])
    kinds = {("succeeded" if name == "succeeded" else "failed") for run in runs for _, name, *_ in run.results}
    assert kinds == ({result} if result else set())


def test_a_call_that_the_store_did_not_count_is_counted_with_the_next_job() -> None:
    call, runs = SharedCall(), [ARun(PAY, unsaved=("pay",)), ARun(PAY)]
    for run in runs:
        run.use.admit_depends_on()
        run.use.share(call)
        run.use.handler_ended(DOWN)

    assert [run.breakers.counted for run in runs] == [[True], [True]]
