"""The steps of one run in memory: which run, which return what is recorded, and what stops a handler."""

from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any

import pytest
from pydantic import SecretStr

from tests.support.builders import NOW, SECOND, a_job, with_changes
from tidemill import Cancelled, Continue, Done, GiveUp, Snooze, WaitFor
from tidemill.application.steps.steps import Steps
from tidemill.domain.errors import (
    CancelRequestedError,
    LeaseLostError,
    StepError,
    StepsChangedError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.steps.steps import LARGEST_STEPS_BYTES, MOST_STEPS, Step

OLD = Step(name="charge", at=NOW, attempt=1, result='{"id":7}')
NEW = Step(name="ship", at=NOW, attempt=2, result="1")


class Store:
    """Records steps, or raises `error` instead."""

    def __init__(self, error: Exception | None = None, *, cancel: bool = False) -> None:
        self.error = error
        self.cancel = cancel
        self.written: list[Step] = []

    def record_step(self, job: Job, step: Step) -> Job:
        if self.error:
            raise self.error
        self.written.append(step)
        return with_changes(job, steps=(*job.steps.recorded, step), cancel_requested_at=NOW if self.cancel else None)


def nothing() -> None:
    pass


class Run:
    def __init__(self, *recorded: Step, store: Store | None = None, under_way: Callable[[], None] = nothing) -> None:
        self.store = store or Store()
        self.left: list[Job] = []
        self.steps = Steps(
            a_job(steps=recorded, attempt=2),
            self.store,  # type: ignore[arg-type]  # it needs no more
            lambda: NOW,
            version="v",
            under_way=under_way,
            writes=self.left.append,
        )

    def take(self, name: str, value: Any = 1) -> Any:
        return self.steps.take(name, partial(lambda: value))


def failing() -> Any:
    raise OSError("no")


def never() -> Any:
    raise AssertionError("a recorded step ran again")


def test_a_recorded_step_returns_its_result_and_does_not_run_and_a_new_one_runs_and_is_recorded() -> None:
    run = Run(OLD)

    assert run.steps.take("charge", partial(never)) == {"id": 7}
    assert (run.store.written, run.left) == ([], [])
    assert run.take("ship", [1, 2]) == [1, 2]

    step = Step(name="ship", at=NOW, attempt=2, result="[1,2]", version="v")
    assert run.store.written == [step]
    assert [job.steps.recorded for job in run.left] == [(OLD, step)]
    run.take("mail")
    assert [step.name for step in run.left[-1].steps.recorded] == ["charge", "ship", "mail"]
    run.steps.end(Done())


@pytest.mark.parametrize("name", ["", "a b", "x" * 65])
def test_a_step_needs_a_valid_name(name: str) -> None:
    with pytest.raises(StepError, match="invalid step name"):
        Run().take(name)


@pytest.mark.parametrize("recorded", [(), (OLD,)])
def test_a_step_is_taken_once(recorded: tuple[Step, ...]) -> None:
    run = Run(*recorded)
    run.take("charge")
    with pytest.raises(StepError, match="the step 'charge' was asked for twice"):
        run.take("charge")


@pytest.mark.parametrize(
    ("recorded", "name", "says"),
    [
        ((), "a b", "invalid step name"),
        ((OLD,), "ship", "charge"),
        ((replace(OLD, result="{"),), "charge", "the recorded result of the step 'charge' does not fit"),
    ],
)
def test_no_step_runs_after_one_that_could_not_be_taken_even_if_the_handler_catches_the_error(
    recorded: tuple[Step, ...], name: str, says: str
) -> None:
    run = Run(*recorded)
    with pytest.raises(StepError, match=says) as first:
        run.take(name)

    with pytest.raises(StepError) as again:
        run.take("next")
    with pytest.raises(StepError) as ended:
        run.steps.end(Done())

    assert again.value is ended.value is first.value
    assert run.store.written == []


def test_a_run_asks_for_the_recorded_steps_first_and_in_their_order() -> None:
    with pytest.raises(StepsChangedError):
        Run(OLD, NEW).take("ship")


def test_a_job_has_at_most_so_many_steps() -> None:
    recorded = [Step(name=f"s{number}", at=NOW, attempt=1) for number in range(MOST_STEPS - 1)]
    run = Run(*recorded)
    for step in recorded:
        run.take(step.name)
    run.take("last")
    with pytest.raises(StepError, match=f"at most {MOST_STEPS} steps"):
        run.take("more")


@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, False)])
def test_the_results_of_all_steps_are_bounded_together(more: int, fits: bool) -> None:
    run = Run(replace(OLD, result=" " * (LARGEST_STEPS_BYTES - 6 + more) + "1234"))
    run.take("charge")
    if fits:
        run.take("ship", 12)
        assert [step.result for step in run.store.written] == ["12"]
    else:
        with pytest.raises(StepError, match=f"the results of the steps are {LARGEST_STEPS_BYTES + 1} bytes"):
            run.take("ship", 12)
        assert (run.store.written, run.left) == ([], [])


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (WriteRefusedError("record_step", None), LeaseLostError),
        (StoreUnavailableError("down"), StoreUnavailableError),
        (TransactionConflictError("busy"), TransactionConflictError),
    ],
)
def test_no_step_runs_after_a_record_that_failed_even_if_the_handler_catches_the_error(
    error: Exception, raised: type[TidemillError]
) -> None:
    run = Run(store=Store(error))
    for name in ("charge", "ship"):
        with pytest.raises(raised):
            run.take(name)
    for ended in (
        partial(run.steps.end, Done()),
        partial(run.steps.of_another_version, Done()),
        run.steps.require_sound,
    ):
        with pytest.raises(raised):
            ended()


@pytest.mark.parametrize("value", [object(), float("nan")])
def test_a_result_that_cannot_be_recorded_ends_the_run(value: Any) -> None:
    run = Run()
    with pytest.raises(StepError, match="must be JSON"):
        run.take("charge", value)
    with pytest.raises(StepError, match="must be JSON"):
        run.steps.end(Done())
    assert run.store.written == []


def test_a_step_whose_results_are_never_read_back_does_not_run() -> None:
    def secret() -> SecretStr:
        raise AssertionError("its effect would come before the refusal")

    secret.__annotations__["return"] = SecretStr
    run = Run()

    with pytest.raises(StepError, match="no result of the step 'charge' would be read back"):
        run.steps.take("charge", partial(secret))

    with pytest.raises(StepError):
        run.steps.require_sound()


def test_a_step_that_raises_may_be_asked_for_again() -> None:
    run = Run()

    with pytest.raises(OSError, match="no"):
        run.steps.take("charge", partial(failing))

    assert run.take("charge") == 1
    run.steps.end(Done())


def test_a_step_within_another_ends_the_run() -> None:
    run = Run()
    with pytest.raises(StepError, match="the step 'inner' was asked for within another"):
        run.steps.take("outer", partial(run.take, "inner"))
    with pytest.raises(StepError, match="within another"):
        run.take("next")
    with pytest.raises(StepError, match="within another"):
        run.steps.end(Done())


def test_the_next_step_may_be_asked_for_in_another_thread() -> None:
    run = Run()
    results: list[Any] = []
    run.take("charge")
    with pytest.raises(OSError, match="no"):
        run.steps.take("ship", partial(failing))
    thread = Thread(target=lambda: results.append(run.take("ship", 3)))
    thread.start()
    thread.join()
    assert results == [3]


@pytest.mark.parametrize(("calls", "written"), [(0, []), (1, [])])
def test_a_run_that_is_over_takes_and_records_no_step(calls: int, written: list[Step]) -> None:
    looks = iter([None] * calls)

    def under_way() -> None:
        if next(looks, "over"):
            raise LeaseLostError("over")

    run = Run(under_way=under_way)
    called: list[int] = []
    with pytest.raises(LeaseLostError):
        run.steps.take("charge", partial(called.append, 1))
    assert (len(called), run.store.written, run.left) == (calls, written, [])


def test_a_recorded_step_needs_no_look_at_the_run() -> None:
    def over() -> None:
        raise LeaseLostError("over")

    assert Run(OLD, under_way=over).take("charge") == {"id": 7}


def test_no_further_step_runs_once_a_cancel_was_requested_and_the_recorded_one_counts() -> None:
    run = Run(store=Store(cancel=True))
    assert run.take("charge") == 1
    with pytest.raises(CancelRequestedError, match="asked to end"):
        run.steps.take("ship", partial(never))
    run.steps.require_sound()


WITHOUT_END = [Snooze(SECOND), WaitFor("approval", timeout=SECOND), GiveUp("no"), Cancelled(), Continue(None)]


def recorded_by(*versions: str) -> tuple[Step, ...]:
    return tuple(replace(step, version=version) for step, version in zip((OLD, NEW), versions, strict=True))


def steps_of(version: str, recorded: tuple[Step, ...]) -> Steps:
    return Steps(
        a_job(steps=recorded),
        Store(),  # type: ignore[arg-type]  # it needs no more
        lambda: NOW,
        version=version,
        under_way=nothing,
        writes=lambda _job: None,
    )


@pytest.mark.parametrize("value", WITHOUT_END, ids=lambda value: type(value).__name__)
def test_only_a_success_must_have_asked_for_each_recorded_step(value: Any) -> None:
    steps = steps_of("new", recorded_by("old", "old"))
    steps.take("charge", partial(never))
    steps.end(value)
    assert steps.of_another_version(value) is None
    with pytest.raises(StepsChangedError):
        steps.end(Done())


@pytest.mark.parametrize(
    ("versions", "version", "waits"),
    [
        (("old", "old"), "new", True),
        # The last step counts.
        (("old", "new"), "new", False),
        (("old", "new"), "old", True),
        (("old", "old"), "old", False),
        # An engine recorded it that kept no version: that of this run may be another.
        (("", ""), "new", True),
        (("old", "old"), "", False),
        (("", ""), "", False),
    ],
)
def test_a_success_without_the_last_recorded_steps_waits_for_the_version_that_recorded_them(
    versions: tuple[str, str], version: str, waits: bool
) -> None:
    steps = steps_of(version, recorded_by(*versions))
    steps.take("charge", partial(never))

    found = steps.of_another_version(Done())

    assert (found is not None) is waits
    assert not waits or "ship" in str(found)
    steps.take("ship", partial(never))
    assert steps.of_another_version(Done()) is None
