"""The simulated downstream: its capacity, its latency, and its troubles."""

from random import Random

from tests.simulation.world.downstream import Downstream, DownstreamStatusError, Trouble
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Process, Scheduler


def _called(*, times: int, **options: object) -> tuple[Downstream, list[Exception]]:
    """The downstream after so many calls at once, and the errors that they raised."""
    scheduler = Scheduler(Random(1))
    errors: list[Exception] = []
    downstream = Downstream(scheduler, Faults(Random(1)), **options)  # type: ignore[arg-type]

    def call() -> None:
        try:
            downstream.call()
        except (DownstreamStatusError, TimeoutError) as error:
            errors.append(error)

    for number in range(times):
        scheduler.spawn(Process(f"caller {number}", environment={}), call)
    scheduler.run(until_ms=scheduler.now_ms + 60_000, most_steps=1_000)
    scheduler.end()
    return downstream, errors


def _took_ms(downstream: Downstream) -> int:
    return max((call.ended_ms or 0) - call.began_ms for call in downstream.calls)


def test_calls_within_the_capacity_take_the_latency() -> None:
    downstream, errors = _called(times=4, capacity=4, latency_ms=100)
    assert errors == []
    assert _took_ms(downstream) == 100


def test_calls_beyond_the_capacity_share_it() -> None:
    downstream, _ = _called(times=8, capacity=4, latency_ms=100)
    assert _took_ms(downstream) == 200


def test_a_call_that_takes_too_long_times_out() -> None:
    downstream, errors = _called(times=8, capacity=1, latency_ms=100, timeout_ms=500)
    assert {type(error) for error in errors} == {TimeoutError}
    assert _took_ms(downstream) == 500


def test_it_refuses_calls_above_its_bound_at_once() -> None:
    downstream, errors = _called(times=5, capacity=4, refuses_above=4)
    assert [str(error) for error in errors] == ["the downstream answered 429"]
    assert min((call.ended_ms or 0) - call.began_ms for call in downstream.calls) == 0


def test_each_call_fails_while_it_is_down() -> None:
    downstream, errors = _called(times=3, troubles=[Trouble(0, 2**60)])
    assert [str(error) for error in errors] == ["the downstream answered 503"] * 3
    assert not any(call.succeeded for call in downstream.calls)
    assert downstream.faults.counted[Fault.DOWNSTREAM_DOWN] >= 3


def test_calls_take_longer_while_it_is_slow() -> None:
    downstream, errors = _called(times=1, latency_ms=100, troubles=[Trouble(0, 2**60, slower=7)])
    assert errors == []
    assert _took_ms(downstream) == 700
