"""A recorded step does not run again: after a failure, a crash and a redrive; and the page that describes it."""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, Field, computed_field

from tests.support.builders import NOW, with_changes
from tests.support.document_blocks import python_blocks
from tests.support.documented_job_types import GUIDES
from tidemill import Continue, RetryAfter, Run, Snooze, StepError, StepsChangedError, WaitFor, job_type
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.states import State
from tidemill.domain.steps.steps import LARGEST_STEP_BYTES, LARGEST_STEPS_BYTES, MOST_STEPS, Step
from tidemill.testing import Drive, Ran, run_job


class Nothing(BaseModel):
    pass


class Charge(BaseModel):
    id: str
    at: datetime


class Calls:
    """Functions of steps that count their calls."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def act(self, name: str) -> str:
        self.made.append(name)
        return f"{name} done"


def stepping(handler: Callable[[Nothing, Run], Any]) -> Any:
    return job_type("test.steps", payload=Nothing, max_attempts=3)(handler)


def run_once(act: Callable[[Run], Any]) -> Ran:
    return run_job(stepping(lambda payload, run: act(run)))


def test_a_retry_continues_behind_the_recorded_steps() -> None:
    calls = Calls()

    def handler(_payload: Nothing, run: Run) -> list[str]:
        first = run.step("first", calls.act, "first")
        if run.attempt == 1:
            raise ValueError("no luck")
        return [first, run.step("second", calls.act, "second")]

    drive = Drive(stepping(handler))
    failed = drive.run()
    ended = drive.run()

    assert (failed.state, failed.steps, [step.name for step in failed.job.steps.recorded]) == (
        *(State.RETRYING, ("first",)),
        ["first"],
    )
    assert (ended.state, ended.steps, ended.result) == (State.SUCCEEDED, ("second",), ["first done", "second done"])
    assert calls.made == ["first", "second"]
    assert ended.job.steps.recorded == (), "a success drops them"


@pytest.mark.parametrize(
    "later", [Continue(), Snooze(timedelta(0)), WaitFor("x", timedelta(minutes=1))], ids=["continue", "snooze", "wait"]
)
def test_steps_survive_a_run_that_ends_for_later(later: Any) -> None:
    calls = Calls()

    def handler(_payload: Nothing, run: Run) -> Any:
        run.step("first", calls.act, "first")
        return run.step("second", calls.act, "second") if run.hops else later

    assert Drive(stepping(handler)).run_until_it_ends().result == "second done"
    assert calls.made == ["first", "second"]


def test_the_result_is_the_same_in_the_run_that_made_it_and_in_the_next() -> None:
    seen: list[Any] = []

    def charge() -> Charge:
        return Charge(id="c-1", at=NOW)

    def handler(_payload: Nothing, run: Run) -> None:
        seen.append((run.step("charge", charge), run.step("pair", lambda: (1, 2)), run.step("none", lambda: None)))
        if run.attempt == 1:
            raise ValueError("no luck")

    Drive(stepping(handler)).run_until_it_ends()

    assert seen == [(Charge(id="c-1", at=NOW), [1, 2], None)] * 2


def test_a_step_that_raises_is_not_recorded_and_may_be_asked_for_again() -> None:
    calls = Calls()

    def handler(_payload: Nothing, run: Run) -> Any:
        def fails_once() -> str:
            if calls.made:
                return "done"
            calls.act("first")
            raise ValueError("no luck")

        try:
            return run.step("first", fails_once)
        except ValueError:
            return run.step("first", fails_once)

    ran = run_job(stepping(handler))

    assert (ran.result, ran.steps) == ("done", ("first",))


def test_the_key_of_a_step_is_the_same_in_every_attempt() -> None:
    keys: list[str] = []

    def handler(_payload: Nothing, run: Run) -> None:
        keys.append(run.step_key("charge"))
        raise ValueError("no luck")

    Drive(stepping(handler)).run_until_it_ends()

    assert keys == ["job/charge"] * 3


@pytest.mark.parametrize(
    ("recorded", "asked"), [(["a", "b"], ["b", "a"]), (["a", "b"], ["a", "c"]), (["a", "b"], ["a"]), (["a"], [])]
)
def test_steps_that_have_changed_end_the_job_with_both_sequences(recorded: list[str], asked: list[str]) -> None:
    calls = Calls()
    drive = Drive(stepping(lambda _payload, run: [run.step(name, calls.act, name) for name in asked]))
    drive.job = _with_steps(drive, recorded)

    ran = drive.run()

    assert (ran.state, ran.job.death, type(ran.raised)) == (State.DEAD, DeathReason.PERMANENT, StepsChangedError)
    assert f"recorded: {', '.join(recorded)}; asked for: " in str(ran.raised)
    assert "give the type a new name" in str(ran.raised)
    assert calls.made == []


def test_a_handler_that_catches_a_fault_of_its_steps_does_not_succeed() -> None:
    def handler(_payload: Nothing, run: Run) -> str:
        for name in ("b", "c"):
            with pytest.raises(StepsChangedError):
                run.step(name, lambda: 1)
        return "well"

    drive = Drive(stepping(handler))
    drive.job = _with_steps(drive, ["a"])

    assert drive.run().job.death is DeathReason.PERMANENT


def test_a_step_may_be_added_behind_the_last_one() -> None:
    calls = Calls()
    drive = Drive(stepping(lambda _payload, run: [run.step(name, calls.act, name) for name in ("a", "b")]))
    drive.job = _with_steps(drive, ["a"])

    assert (drive.run().result, calls.made) == (["done", "b done"], ["b"])


def _nested(run: Run) -> Any:
    return run.step("outer", lambda: run.step("inner", lambda: 1))


def _twice(run: Run) -> None:
    run.step("a", lambda: 1)
    run.step("a", lambda: 1)


def _too_many(run: Run) -> None:
    for number in range(MOST_STEPS + 1):
        run.step(f"s-{number}", lambda: 1)


def _too_large_together(run: Run) -> None:
    for number in range(LARGEST_STEPS_BYTES // LARGEST_STEP_BYTES + 1):
        run.step(f"s-{number}", lambda: "x" * (LARGEST_STEP_BYTES - 2))


def _of_no_json_type(run: Run) -> None:
    def make() -> Calls:
        return Calls()

    run.step("a", make)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (_nested, "was asked for within another"),
        (_twice, "was asked for twice"),
        (_too_many, "at most 64 steps"),
        (_too_large_together, "a job may keep at most 65536"),
        (_of_no_json_type, "which cannot be recorded"),
        (lambda run: run.step("A b", lambda: 1), "invalid step name 'A b'"),
        (lambda run: run.step("a", lambda: {1}), "must be JSON"),
        (lambda run: run.step("a", lambda: float("nan")), "must be JSON"),
        (lambda run: run.step("a", lambda: "x" * LARGEST_STEP_BYTES), "a step may keep at most 8192"),
    ],
)
def test_a_step_that_cannot_be_recorded_ends_the_job_and_says_why(act: Callable[[Run], Any], message: str) -> None:
    ran = run_once(act)

    assert (ran.state, ran.job.death) == (State.DEAD, DeathReason.PERMANENT)
    assert isinstance(ran.raised, StepError)
    assert message in str(ran.raised)


def test_a_result_whose_model_has_an_alias_is_read_back() -> None:
    class Receipt(BaseModel):
        id: str = Field(alias="receiptId")

    def receive() -> Receipt:
        return Receipt(receiptId="r-1")

    ran = run_once(lambda run: run.step("receive", receive).id)

    assert (ran.result, [step.result for step in ran.job.steps.recorded]) == ("r-1", [])


def test_the_annotation_of_a_parameter_does_not_hide_that_of_the_result() -> None:
    def charge(client: "OnlyForTypeCheckers") -> Charge:  # type: ignore[name-defined]  # noqa: F821
        return Charge(id=client, at=NOW)

    class Charging:
        def __call__(self) -> Charge:
            return Charge(id="c-2", at=NOW)

    ran = run_once(lambda run: [run.step("first", charge, "c-1").id, run.step("second", Charging()).id])

    assert ran.result == ["c-1", "c-2"]


def test_a_step_whose_result_could_not_be_read_back_is_not_called() -> None:
    class Receipt(BaseModel, extra="forbid"):
        id: str

        @computed_field  # type: ignore[prop-decorator]
        @property
        def short(self) -> str:
            return self.id[:1]

    called: list[str] = []

    def receive() -> Receipt:
        called.append("receive")
        return Receipt(id="r-1")

    ran = run_once(lambda run: run.step("receive", receive))

    assert (ran.state, isinstance(ran.raised, StepError), ran.job.steps.recorded) == (State.DEAD, True, ())
    assert str(ran.raised).startswith("no result of the step 'receive' would be read back as it is: /short")
    assert called == []


def test_a_handler_that_raises_another_error_after_a_fault_of_a_step_is_not_tried_again() -> None:
    def handler(run: Run) -> None:
        try:
            run.step("a", lambda: "x" * LARGEST_STEP_BYTES)
        except StepError as error:
            raise RetryAfter(1) from error

    ran = run_once(handler)

    assert (ran.state, ran.job.death, ran.job.attempt) == (State.DEAD, DeathReason.PERMANENT, 1)


def test_a_recorded_result_that_no_longer_fits_its_type_ends_the_job() -> None:
    def number() -> int:
        raise AssertionError("it is recorded")

    drive = Drive(stepping(lambda _payload, run: run.step("a", number)))
    drive.job = _with_steps(drive, ["a"], result='"text"')

    ran = drive.run()

    assert (ran.state, "accept both forms" in str(ran.raised)) == (State.DEAD, True)


def test_a_cancel_ends_the_job_before_its_next_step() -> None:
    calls = Calls()

    def handler(_payload: Nothing, run: Run) -> None:
        drive.cancel()
        run.step("first", calls.act, "first")
        run.step("second", calls.act, "second")

    drive = Drive(stepping(handler))

    assert (drive.run().state, calls.made) == (State.CANCELLED, ["first"])
    assert [step.name for step in drive.job.steps.recorded] == ["first"], "it says which effects the job has had"


def test_outside_of_a_worker_a_step_is_a_plain_call() -> None:
    run = Run(
        job_id="j",
        tenant="t",
        attempt=1,
        max_attempts=1,
        submitted_at=NOW,
        deadline=NOW,
        idempotency_key="j",
    )

    def pair(left: int, *, right: int) -> tuple[int, int]:
        return left, right

    assert run.step("a", pair, 1, right=2) == (1, 2)


def test_the_test_of_the_page_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    source, test = python_blocks(GUIDES / "steps.md")
    module = ModuleType("functions.jobs.order_fulfil")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(source, module.__dict__)
    tests: dict[str, Any] = {}
    exec(test, tests)

    with monkeypatch.context() as patch:
        tests["test_a_retry_does_not_charge_again"](patch)

    assert run_job(module.fulfil, {"number": "7", "euros": 20}).result == {
        "charge": "charge-charge",
        "shelf": "shelf-of-7",
    }


def _with_steps(drive: Drive, names: list[str], *, result: str = '"done"') -> Job:
    return with_changes(drive.job, steps=tuple(Step(name=name, at=NOW, attempt=1, result=result) for name in names))
