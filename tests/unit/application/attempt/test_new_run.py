"""`new_run`: what the handler of a claimed job knows of it."""

import re
from typing import Any, Final

import pytest

from tests.support.builders import A_SIGNAL, NOW, SECOND, TENANT, a_job, a_job_type, types_of
from tests.support.configurations import configured
from tests.support.gate_context import GateAttempt
from tests.support.single_job import Clock, tools
from tidemill import Run
from tidemill.application.attempt.attempt_context import AttemptHooks
from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.handler_context import HandlerContext
from tidemill.application.attempt.new_run import new_run
from tidemill.application.job_types import JobType
from tidemill.application.ports import Checkpoint
from tidemill.domain.errors import BatchHandlerError
from tidemill.domain.flows.flow_place import FlowPlace
from tidemill.domain.job import Job
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace
from tidemill.domain.waiting.signals import Awaited
from tidemill.domain.waiting.waiting import Cause
from tidemill.in_memory.single_job import OneJob

CONTEXT: Final = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Calls:
    """What the run called."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []

    def take_step(self, name: str, call: Any) -> Any:
        self.made.append(("step", name))
        return call()

    def observe(self, *given: Any) -> None:
        self.made.append(("observe", *given))


def _run(
    job: Job,
    job_type: JobType | None = None,
    calls: Calls | None = None,
    *,
    trace: str = "trace",
    store: OneJob | None = None,
    **changes: Any,
) -> Run:
    calls = calls or Calls()
    job_type = job_type or a_job_type(max_attempts=7)
    context = replace(
        tools(store or OneJob(job), types_of(job_type), Clock()),  # type: ignore[arg-type]  # it needs less
        parents_of=lambda one: {"parents of": one.id},
        **changes,
    )
    claimed = ClaimedRun(job, context, AttemptHooks(), deadline=NOW + 30 * SECOND, attempt=GateAttempt())
    claimed.observe, claimed.take_step = calls.observe, calls.take_step
    return new_run(claimed, HandlerContext(fields={"job_id": job.id}, trace=trace))


def test_a_run_states_the_facts_of_its_job() -> None:
    job = a_job(
        id="j",
        attempt=2,
        created_at=NOW - SECOND,
        parent="p",
        group="g",
        flow=FlowPlace(id="f", node="n"),
        hops=3,
        signals=(A_SIGNAL, replace(A_SIGNAL, name="used", used=True)),
        awaited=Awaited(cause=Cause.SIGNAL, name="approval", since=NOW, until=NOW),
        checkpoint='{"row":4}',
    )

    run = _run(job, trace=f"{CONTEXT}/request")

    assert run == Run(
        job_id="j",
        tenant=TENANT,
        attempt=2,
        max_attempts=7,
        submitted_at=NOW - SECOND,
        deadline=NOW + 30 * SECOND,
        idempotency_key="j",
        parent="p",
        group="g",
        flow="f",
        hops=3,
        resumed_from={"row": 4},
        signals={"approval": {"by": "ada"}},
        waited_for="approval",
        traceparent=CONTEXT,
    )
    assert run.parents == {"parents of": "j"}
    assert run.log.extra == {"job_id": "j"}


def test_a_plain_job_has_no_more_facts() -> None:
    run = _run(a_job(id="j"))

    assert (run.flow, run.signals, run.waited_for, run.resumed_from, run.traceparent) == (None, {}, None, None, None)


def test_a_checkpoint_of_null_is_known_as_null() -> None:
    assert _run(a_job(checkpoint="null")).resumed_from is None


def test_a_run_reports_to_its_worker() -> None:
    calls, store = Calls(), OneJob(a_job())
    run = _run(store.job, calls=calls, store=store)

    run.checkpoint({"row": 1}, done=1, total=2)
    run.observed(0.5, throttled=True)

    assert run.step("charge", int, "7") == 7
    assert calls.made == [("observe", 0.5, True), ("step", "charge")]
    assert store.saved == [Checkpoint(state='{"row":1}', done=1, total=2)]


def test_a_run_reads_the_flags_and_the_strain_that_an_operator_has_set() -> None:
    run = _run(
        a_job(),
        configuration=lambda: configured(
            Setting(name="flags.new", value=True, at=NOW, by="eve", reason=""),
            Setting(name="strain.level", value=2, at=NOW, by="eve", reason=""),
        ),
    )

    assert (run.flags, run.strained) == ({"new": True}, 2)


@pytest.mark.parametrize(
    ("act", "word"), [(lambda run: run.checkpoint(1), "run.checkpoint"), (lambda run: run.step("a", int), "run.step")]
)
def test_a_batch_handler_can_save_nothing_of_one_job(act: Any, word: str) -> None:
    calls, store = Calls(), OneJob(a_job())
    run = _run(store.job, replace(a_job_type(), batch=2), calls, store=store)

    with pytest.raises(BatchHandlerError, match=f"^{re.escape(word)} does not work in a batch handler"):
        act(run)

    assert (calls.made, store.saved) == ([], [])
