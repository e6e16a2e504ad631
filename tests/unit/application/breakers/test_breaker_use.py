"""The breakers of one run: which of them its end is counted against, and what it leaves of a probe."""

import pytest

from tests.support.builders import NOW
from tests.support.recorded_breakers import DOWN, JOB, LATE, MAIL, MAPS, PAY, ARun
from tidemill.domain.errors import BreakerOpenError, PermanentJobError
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Cause, Line, Wait


def test_all_downstreams_are_asked_before_one_of_them_is_probed() -> None:
    run = ARun(PAY, MAIL, refusing=("mail",))

    with pytest.raises(BreakerOpenError) as refused:
        run.use.require_depends_on()

    assert (refused.value.name, run.breakers.asked) == ("mail", ["pay?", "mail?"])
    run.breakers.refusing = set()
    run.use.require_depends_on()
    run.use.admit_depends_on()
    assert run.breakers.asked[2:] == ["pay?", "mail?", "pay", "mail"]


def test_a_run_that_is_not_admitted_reports_nothing() -> None:
    run = ARun(PAY, refusing=("pay",), opened=("pay",))
    with pytest.raises(BreakerOpenError) as refused:
        run.use.admit_depends_on()

    assert run.use.handler_ended(refused.value) == "pay"
    run.use.give_up()
    assert (run.results, run.use.closed()) == ([], [])


def test_after_its_end_a_run_may_not_call() -> None:
    run = ARun()
    run.use.admit(MAIL)
    run.use.handler_ended(None)
    with pytest.raises(BreakerOpenError):
        run.use.admit(PAY)
    assert run.breakers.asked == ["mail"]

    given_up = ARun()
    given_up.use.give_up()
    with pytest.raises(BreakerOpenError):
        given_up.use.admit(PAY)


@pytest.mark.parametrize(
    ("error", "results", "blamed"),
    [
        (None, [("pay", "succeeded"), ("mail", "succeeded")], None),
        # It works, and refuses the call for ever.
        (PermanentJobError("no"), [("pay", "succeeded"), ("mail", "succeeded")], None),
        (DOWN, [("pay", "worker.1", "ConnectionError"), ("mail", "worker.2", "ConnectionError")], "mail"),
        (
            LATE,
            [
                ("pay", "worker.1", "JobTimeoutError"),
                ("mail", "worker.2", "JobTimeoutError"),
            ],
            "mail",
        ),
        # A defect says nothing about the downstream.
        (KeyError("a"), [], None),
        # The error comes from a block.
        (BreakerOpenError("maps"), [], "maps"),
    ],
)
def test_the_end_of_the_handler_is_the_result_of_its_downstreams(
    error: Exception | None, results: list[tuple[str, ...]], blamed: str | None
) -> None:
    run = ARun(PAY, MAIL, opened=("mail",))
    run.use.admit_depends_on()

    assert run.use.handler_ended(error) == blamed

    assert run.results == results
    run.use.give_up()
    left = {name for name, *_ in run.results}
    assert left == (set() if results else {"pay", "mail"}), "another job probes in its place"


def test_the_first_open_breaker_by_name_is_blamed() -> None:
    run = ARun(PAY, MAIL, opened=("pay", "mail"))
    run.use.admit_depends_on()
    assert run.use.handler_ended(DOWN) == "mail"


def test_a_failure_without_an_open_breaker_blames_none() -> None:
    run = ARun(PAY)
    run.use.admit_depends_on()
    assert run.use.handler_ended(DOWN) is None


@pytest.mark.parametrize(
    ("named", "result"),
    [("transient", ("pay", "worker.1", "KeyError")), ("permanent", ("pay", "succeeded")), ("defect", None)],
)
def test_the_rules_of_the_type_decide_what_counts(named: str, result: tuple[str, ...] | None) -> None:
    run = ARun(PAY, opened=("pay",), rules=lambda _error: named)
    run.use.admit_depends_on()

    assert run.use.handler_ended(KeyError("a")) == ("pay" if named == "transient" else None)
    assert run.results == ([result] if result else [])


def test_each_block_reports_its_own_result() -> None:
    run = ARun(MAIL)
    run.use.admit_depends_on()
    run.use.admit(PAY)
    run.use.leave(PAY, DOWN)
    run.use.admit(PAY)
    run.use.leave(PAY, None)
    assert run.results == [("pay", "worker.1", "ConnectionError"), ("pay", "succeeded")]

    run.use.handler_ended(DOWN)

    assert run.results == [("mail", "worker.2", "ConnectionError")], "the block of the other one has ended"


def test_a_dependency_whose_block_has_ended_gets_no_second_result() -> None:
    run = ARun(PAY, opened=("pay",))
    run.use.admit_depends_on()
    run.use.leave(PAY, None)
    assert run.results == [("pay", "succeeded")]

    assert run.use.handler_ended(DOWN) == "pay", "the error is counted against it all the same"
    assert run.results == []


@pytest.mark.parametrize(
    ("error", "results"),
    [(LATE, [("maps", "worker.1", "JobTimeoutError")]), (DOWN, []), (None, [])],
)
def test_a_block_that_still_hangs_when_the_time_is_over_has_failed(
    error: Exception | None, results: list[tuple[str, ...]]
) -> None:
    run = ARun(opened=("maps",))
    run.use.admit(MAPS)

    assert run.use.handler_ended(error) == ("maps" if results else None)
    assert run.results == results
    run.use.leave(MAPS, DOWN)
    assert run.results == [], "its result comes too late"
    run.use.give_up()
    assert run.results == ([] if results else [("maps", "given up")])


def test_a_timeout_counts_against_a_dependency_whose_block_was_entered_again() -> None:
    run = ARun(PAY)
    run.use.admit_depends_on()
    run.use.leave(PAY, None)
    run.use.admit(PAY)

    run.use.handler_ended(LATE)

    assert run.results[1:] == [("pay", "worker.1", "JobTimeoutError")]


@pytest.mark.parametrize(
    ("error", "again"),
    [(None, [("pay", "succeeded"), ("pay", "given up")]), (DOWN, [("pay", "given up")])],
)
def test_a_success_that_the_store_did_not_take_is_reported_once_more(
    error: Exception | None, again: list[tuple[str, ...]]
) -> None:
    run = ARun(PAY, unsaved=("pay",))
    run.use.admit_depends_on()
    run.use.handler_ended(error)
    assert len(run.results) == 1

    run.use.give_up()

    assert run.results == again


def test_the_result_of_a_block_that_the_store_did_not_take_is_not_replaced_by_that_of_the_handler() -> None:
    run = ARun(PAY, unsaved=("pay",))
    run.use.admit_depends_on()
    run.use.leave(PAY, None)
    assert run.results == [("pay", "succeeded")]

    run.use.handler_ended(DOWN)

    assert run.results == []


def test_a_timeout_says_nothing_more_of_a_dependency_that_has_answered() -> None:
    run = ARun(PAY)
    run.use.admit_depends_on()
    run.use.leave(PAY, None)
    assert run.results == [("pay", "succeeded")]

    run.use.handler_ended(LATE)

    assert run.results == []


def test_a_call_that_was_not_made_counts_as_no_result_under_any_rules() -> None:
    run = ARun(PAY, rules=lambda _error: "transient")
    run.use.admit_depends_on()

    run.use.handler_ended(BreakerOpenError("maps"))

    assert run.results == []


def test_an_error_may_be_counted_against_the_breaker_of_a_block() -> None:
    run = ARun(opened=("maps",))
    run.use.admit(MAPS)
    run.use.leave(MAPS, DOWN)

    assert run.use.handler_ended(DOWN) == "maps"


def test_an_end_is_reported_once() -> None:
    run = ARun(PAY)
    run.use.admit_depends_on()
    run.use.give_up()
    run.use.give_up()
    assert run.results == [("pay", "given up")]


def test_a_success_that_the_store_takes_late_needs_no_other_probe() -> None:
    run = ARun(PAY, unsaved=("pay",))
    run.use.admit_depends_on()
    run.use.handler_ended(None)
    run.breakers.unsaved = set()
    assert run.results == [("pay", "succeeded")]

    run.use.give_up()
    run.use.give_up()

    assert run.results == [("pay", "succeeded")]


@pytest.mark.parametrize(
    ("wait", "asks", "given_up"),
    [
        (None, False, False),
        (Wait(cause=Cause.BREAKER, key="pay", since=NOW), False, True),
        # The breaker parked it, and may have elected it again since.
        (Wait(cause=Cause.BREAKER, key="pay", since=NOW), True, False),
        (Wait(cause=Cause.PAUSE, key="pay", since=NOW), False, False),
    ],
)
def test_an_elected_job_that_did_not_call_leaves_the_probe_to_another(
    wait: Wait | None, asks: bool, given_up: bool
) -> None:
    run = ARun(PAY, job=replace(JOB, wait=wait), refusing=("pay",))
    if asks:
        with pytest.raises(BreakerOpenError):
            run.use.admit_depends_on()

    run.use.give_up()

    assert run.results == ([("pay", "given up")] if given_up else [])


def test_a_job_that_another_breaker_refuses_has_asked_that_one_only() -> None:
    wait = Wait(cause=Cause.BREAKER, key="mail", since=NOW)
    run = ARun(PAY, MAIL, refusing=("mail",), job=replace(JOB, wait=wait))
    with pytest.raises(BreakerOpenError):
        run.use.require_depends_on()

    run.use.give_up()

    assert run.results == []


def test_the_lines_of_the_breakers_that_a_run_has_closed_move_on() -> None:
    run = ARun(PAY, MAIL, MAPS, opened=("pay", "mail"))
    run.use.admit_depends_on()
    assert run.use.closed() == []

    run.breakers.opened = {"mail"}
    assert run.use.closed() == [Line.for_breaker("pay")]
    run.breakers.opened = set()
    assert run.use.closed() == [Line.for_breaker("mail"), Line.for_breaker("pay")]


def test_a_breaker_keeps_a_class_that_its_item_can_hold() -> None:
    run = ARun(PAY)
    run.use.admit_depends_on()
    run.use.handler_ended(type("\u00fc" * 500, (ConnectionError,), {})("down"))

    ((_name, _call, error),) = run.results
    assert error == "\u00fc" * 100
