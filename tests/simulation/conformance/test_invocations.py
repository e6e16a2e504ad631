"""Invocations of a function and their execution environments."""

from functools import partial
from typing import Any

from tests.simulation.conformance.citations import LAMBDA, LAMBDA_GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FunctionError, Throttled

ENVIRONMENTS = LAMBDA_GUIDE + "lambda-runtime-environment.html"


@cites(
    ENVIRONMENTS,
    "Objects declared outside of the function's handler method remain initialized, providing additional "
    "optimization when the function is invoked again.",
)
def test_an_environment_is_reused(simulated: Simulated) -> None:
    names: list[str] = []

    def handle(_event: Any) -> None:
        names.append(simulated.environment())

    simulated.mapped(handle)
    for _ in range(3):
        simulated.send("x")
        simulated.sleep(5)
    assert len(set(names)) == 1


@cites(
    ENVIRONMENTS,
    "Background processes or callbacks that were initiated by your Lambda function and did not complete when "
    "the function ended resume if Lambda reuses the execution environment.",
)
def test_background_threads_resume_in_the_next_invocation(simulated: Simulated) -> None:
    done: list[int] = []

    def handle(_event: Any) -> None:
        pool = simulated.world.threads.pool()

        def slowly() -> None:
            simulated.scheduler.sleep(1_000)
            done.append(simulated.scheduler.now_ms)

        pool.submit(slowly)
        simulated.scheduler.sleep(100)

    simulated.mapped(handle)
    simulated.send("x")
    simulated.sleep(30)
    assert done == []
    simulated.send("y")
    simulated.sleep(2)
    assert len(done) == 1


@cites(
    LAMBDA,
    "The amount of time (in seconds) that Lambda allows a function to run before stopping it.",
)
def test_a_function_is_stopped_at_its_timeout(simulated: Simulated) -> None:
    after: list[int] = []

    def handle(_event: Any) -> None:
        simulated.scheduler.sleep(11_000)
        after.append(1)

    function = simulated.function(handle, timeout_seconds=10)
    began_ms = simulated.scheduler.now_ms
    assert isinstance(simulated.run(lambda: function.invoke({})), FunctionError)
    assert 10_000 <= simulated.scheduler.now_ms - began_ms < 11_000
    simulated.sleep(60)
    assert after == []


@cites(
    ENVIRONMENTS,
    "If the Lambda function crashes or times out during the Invoke phase, Lambda resets the execution environment.",
)
def test_a_timeout_ends_the_environment(simulated: Simulated) -> None:
    names: list[str] = []

    def handle(event: Any) -> None:
        names.append(simulated.environment())
        simulated.scheduler.sleep(event["seconds"] * 1000)

    function = simulated.function(handle, timeout_seconds=10)
    for seconds in (1, 60, 1):
        simulated.run(partial(function.invoke, {"seconds": seconds}))
    first, second, third = names
    assert first == second != third


@cites(
    LAMBDA_GUIDE + "python-context.html",
    "get_remaining_time_in_millis - Returns the number of milliseconds left before the execution times out.",
)
def test_a_function_knows_the_time_that_is_left(simulated: Simulated) -> None:
    left: list[int] = []

    def handle(context: Any) -> None:
        for _ in range(2):
            left.append(context.get_remaining_time_in_millis())
            simulated.scheduler.sleep(4_000)

    function = simulated.function(lambda _event: None, timeout_seconds=10)
    function.handler = lambda _event, context: handle(context)
    simulated.run(lambda: function.invoke({}))
    assert left == [10_000, 6_000]


@cites(
    LAMBDA_GUIDE + "configuration-concurrency.html",
    "If the function is invoked again while a request is still being processed, another instance is allocated, which "
    "increases the function's concurrency.",
)
def test_an_environment_has_one_invocation_at_a_time(simulated: Simulated) -> None:
    names: list[str] = []

    def handle(_event: Any) -> None:
        names.append(simulated.environment())
        simulated.scheduler.sleep(2_000)

    function = simulated.function(handle)
    for _ in range(3):
        simulated.scheduler.spawn(simulated.world.process("caller"), lambda: function.invoke({}))
    simulated.sleep(10)
    assert len(set(names)) == 3


@cites(
    ENVIRONMENTS,
    "an environment stays after an error that its handler raised",
    quoted=False,
)
def test_an_error_leaves_the_environment(simulated: Simulated) -> None:
    names: list[str] = []

    def handle(_event: Any) -> None:
        names.append(simulated.environment())
        raise RuntimeError("of its own")

    function = simulated.function(handle)
    answers = [simulated.run(lambda: function.invoke({})) for _ in range(2)]
    assert [answer.what for answer in answers] == ["RuntimeError: of its own"] * 2
    assert len(set(names)) == 1


@cites(LAMBDA, "The request throughput limit was exceeded.")
def test_an_invocation_may_be_refused(simulated: Simulated) -> None:
    calls: list[int] = []
    function = simulated.function(lambda _event: calls.append(1))
    simulated.inject(Fault.NOT_STARTED)

    def invoke() -> bool:
        try:
            function.invoke({})
        except Throttled:
            return True
        return False

    assert simulated.run(invoke)
    assert calls == []
