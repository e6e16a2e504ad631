"""Execution environments when the code of a function is updated, and when memory runs out."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.simulation.conformance.citations import LAMBDA, LAMBDA_GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import Function, FunctionError

MINUTE_SECONDS = 60


def updated(simulated: Simulated, handler: Callable[[Any], Any]) -> Function:
    """A function whose code is updated within 15 to 30 minutes."""
    faults = simulated.world.faults
    faults.stopped, faults.rates = False, {Fault.DEPLOYED: 1.0}
    simulated.world.rollout.plan(simulated.scheduler.now_ms + 3_600_000)
    faults.stopped = True
    return Function(
        "case",
        lambda event, _context: handler(event),
        timeout_seconds=3 * 3600,
        environment={},
        scheduler=simulated.scheduler,
        faults=faults,
        trace=simulated.world.trace,
        rollout=simulated.world.rollout,
    )


def name(simulated: Simulated) -> str:
    task = simulated.scheduler.current
    return task.process.name if task else ""


@cites(LAMBDA, "During this time, you can't modify the function, but you can still invoke it.")
def test_a_function_that_is_updated_can_still_be_invoked(simulated: Simulated) -> None:
    function = updated(simulated, lambda event: event)
    for minute in range(35):
        assert simulated.run(partial(function.invoke, minute)) == minute
        simulated.sleep(MINUTE_SECONDS)


@cites(
    LAMBDA_GUIDE + "lambda-runtime-environment.html",
    "the first invocation after an update begins in a new environment, and those of the former code are used no more",
    quoted=False,
)
def test_an_environment_has_the_code_that_it_began_with(simulated: Simulated) -> None:
    function = updated(simulated, lambda _event: name(simulated))
    names = []
    for _ in range(35):
        names.append(simulated.run(lambda: function.invoke({})))
        simulated.sleep(MINUTE_SECONDS)
    assert sorted(set(names), key=names.index) == ["case 1", "case 2 (next)"]


@cites(
    LAMBDA_GUIDE + "functions-states.html",
    "an invocation that began before an update ends with the code that it began with",
    quoted=False,
)
def test_an_invocation_ends_with_the_code_that_it_began_with(simulated: Simulated) -> None:
    def handle(_event: Any) -> list[str]:
        began = name(simulated)
        simulated.scheduler.sleep(2 * 3_600_000)
        return [began, name(simulated)]

    function = updated(simulated, handle)
    assert simulated.run(lambda: function.invoke({})) == ["case 1", "case 1"]
    assert simulated.run(lambda: function.invoke({})) == ["case 2 (next)"] * 2


@cites(
    LAMBDA_GUIDE + "troubleshooting-invocation.html",
    "a function that runs out of memory is ended as it stands, with all of its threads, and the next begins anew",
    quoted=False,
)
def test_running_out_of_memory_ends_all_threads_and_the_environment(simulated: Simulated) -> None:
    faults, done, names = simulated.world.faults, [], []

    def slowly() -> None:
        simulated.scheduler.sleep(40_000)
        done.append(1)

    def handle(_event: Any) -> None:
        names.append(name(simulated))
        pool = simulated.world.threads.pool()
        simulated.world.threads.wait([pool.submit(slowly), pool.submit(slowly)])

    function = simulated.function(handle, timeout_seconds=100)
    faults.stopped, faults.rates = False, {Fault.OUT_OF_MEMORY: 1.0}
    assert isinstance(simulated.run(lambda: function.invoke({})), FunctionError)
    assert faults.counted[Fault.OUT_OF_MEMORY] == 1
    faults.stopped = True
    assert simulated.run(lambda: function.invoke({})) is None
    assert (done, names) == ([1, 1], ["case 1", "case 2"])
